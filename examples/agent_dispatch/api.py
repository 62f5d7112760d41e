"""The API of the agent: messages are sent, tasks are looked at, cancelled, paused and resumed."""

from contextlib import suppress
from typing import Annotated, Any, Literal

from fastapi import FastAPI, HTTPException, Query
from pydantic import BaseModel, Field

import rota.fastapi
from examples.agent_dispatch.agent import app, run_task
from examples.agent_dispatch.tracing import set_up
from rota import IdConflict, QueueFull, Run, RunCancelled, RunFailed, RunNotFound, State

set_up()
api = FastAPI(title="agent")
STATES = {
    State.QUEUED: "submitted",
    State.RUNNING: "working",
    State.SUCCEEDED: "completed",
    State.CANCELLED: "canceled",
}
"""As callers of agents know them; the others have the same names."""


class Message(BaseModel):
    message: str = Field(max_length=10_000)
    steps: int = Field(default=3, ge=1, le=100)
    task_id: str | None = Field(default=None, max_length=100)
    """The caller's own id: sent twice, it is one task."""
    wait: bool = True
    """Whether a full queue lets the caller wait for room."""


@api.post("/message/send", status_code=202)
async def send(message: Message) -> dict[str, str]:
    """Answer with the id of the task. The work is done by whichever process has a seat."""
    sending = run_task.using(id=message.task_id, wait=message.wait)
    try:
        return {"task_id": (await sending.submit(message.message, message.steps)).id}
    except QueueFull as error:
        raise HTTPException(429, str(error)) from None
    except IdConflict as error:
        raise HTTPException(409, str(error)) from None


@api.get("/tasks/{id}")
async def get_task(id: str, wait: Annotated[float, Query(ge=0, le=60)] = 0) -> dict[str, Any]:
    """Say how far a task is, and what the agent has made once it is completed. `wait` seconds for its end, if asked."""
    run = await found(id)
    if wait and not run.state.final:
        with suppress(TimeoutError, RunFailed, RunCancelled):
            await app.handle(run.id).result(timeout=wait)
        run = await found(id)
    artifact = await app.handle(run.id).result() if run.state is State.SUCCEEDED else None
    return {**shown(run), "artifact": artifact}


@api.post("/tasks/{id}/{operation}")
async def operate(id: str, operation: Literal["cancel", "pause", "resume"]) -> dict[str, bool]:
    """Reach a task that waits, or the handler that works on it."""
    task = app.handle((await found(id)).id)
    match operation:
        case "cancel":
            return {"changed": await task.cancel()}
        case "pause":
            return {"changed": await task.pause()}
        case "resume":
            return {"changed": await task.resume()}


@api.get("/health")
async def health() -> dict[str, bool]:
    if not await app.health():
        raise HTTPException(503, "the store does not answer")
    return {"healthy": True}


@api.get("/queue")
async def queue() -> dict[str, int]:
    return {"length": (await app.depths())["run_task"].queued}


@api.delete("/queue")
async def clear_queue() -> dict[str, int]:
    return {"cleared": await app.clear("run_task")}


async def found(id: str) -> Run:
    try:
        return await app.handle(id).refresh()
    except RunNotFound as error:
        raise HTTPException(404, str(error)) from None


def shown(run: Run) -> dict[str, Any]:
    return {
        "task_id": run.id,
        "state": STATES.get(run.state, str(run.state)),
        "progress": None if run.progress is None else run.progress.share,
        "attempts": len(run.attempts),
    }


rota.fastapi.install(api, app, at=None)
