"""The API: users push context, and people look at what the scheduler does. Any number of processes serve it."""

from typing import Annotated, Any

from fastapi import Depends, FastAPI, Query, Request
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field
from starlette.datastructures import Headers
from starlette.types import Scope

import rota.fastapi
from examples.context_app.app import USER, app, hierarchy_summary, memory_compression
from examples.context_app.memories import Memories, open_memories
from rota import Decision, Run
from rota.web import Principal, Tokens

TOKENS = Tokens.from_environment()
api = FastAPI(title="context")
TheMemories = Annotated[Memories, Depends(open_memories)]


class Push(BaseModel):
    user_id: str = Field(min_length=1, max_length=100)
    text: str = Field(max_length=10_000)
    device_id: str | None = Field(default=None, max_length=100)
    agent_id: str | None = Field(default=None, max_length=100)


@api.exception_handler(ValueError)
async def refused(request: Request, error: Exception) -> JSONResponse:
    """A key that cannot be: `USER.build` and `USER.parse` say why."""
    return JSONResponse({"detail": str(error)}, 422)


@api.post("/api/push/chat")
async def push_chat(push: Push, memories: TheMemories) -> dict[str, Any]:
    """Keep a text, and let the work for its user follow. A touch never raises: it answers yes, or no and why."""
    memories.push(USER.build(push.user_id, push.device_id, push.agent_id), push.text)
    summary = await hierarchy_summary.touch(push.user_id, push.device_id, push.agent_id)
    compression = await memory_compression.touch(push.user_id)
    return {"hierarchy_summary": shown(summary), "memory_compression": shown(compression)}


@api.post("/api/push/{task_type}/{user_id}")
async def push_by_name(task_type: str, user_id: str) -> dict[str, Any]:
    """Let a task follow a user, by its name. An unknown or disabled task is a no, not an error."""
    return shown(await app.touch(task_type, user_id))


@api.get("/api/context/{user_key}")
async def context(user_key: str, memories: TheMemories) -> dict[str, Any]:
    parts = USER.parse(user_key)
    return {"user_id": parts.user_id, "device_id": parts.device_id, "summary": memories.summary(user_key)}


@api.get("/api/monitoring/scheduler")
async def queue_depths() -> dict[str, int]:
    """How many runs of each task wait."""
    return {task: depth.queued for task, depth in (await app.depths()).items()}


@api.get("/api/monitoring/scheduler/executions")
async def executions(
    task_type: str | None = None, user_key: str | None = None, limit: Annotated[int, Query(ge=1, le=500)] = 20
) -> list[Any]:
    """The last executions, newest first: type, key, success, milliseconds and what triggered it."""
    ended = app.runs(task=task_type, key=user_key, state=("succeeded", "failed"), order="finished")
    found: list[Any] = []
    async for run in ended:
        found.append(execution(run.seen))
        if len(found) >= limit:
            break
    return found


def shown(decision: Decision) -> dict[str, Any]:
    return {"scheduled": bool(decision), "reason": str(decision.reason), "run": decision.run}


def execution(run: Run) -> dict[str, Any]:
    mode = {"touch": "user_activity", "schedule": "periodic"}.get(run.origin.kind, run.origin.kind)
    return {
        "task_type": run.task,
        "user_key": "global" if mode == "periodic" else run.key,
        "success": run.state == "succeeded",
        "duration_ms": round(1000 * sum(attempt.seconds or 0 for attempt in run.attempts[-1:])),
        "trigger_mode": mode,
    }


def who(scope: Scope) -> Principal | None:
    """Let in whoever has the ROTA_TOKEN: to look, to act, and to work as a pull worker."""
    scheme, _, token = Headers(scope=scope).get("authorization", "").partition(" ")
    return TOKENS.find(token) if scheme.lower() == "bearer" else None


rota.fastapi.install(api, app, auth=who)
