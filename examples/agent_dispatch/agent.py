"""The agent: one task that asks a model step by step, and goes on where it was after a pause or a crash."""

import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import httpx

from rota import Context, Retry, Rota

MODEL = os.environ.get("MODEL_URL", "http://127.0.0.1:8200")
"""Where the model is reached."""


def store_url() -> str | None:
    """Return the store that the environment of the platform names; None leaves it to the settings of rota."""
    match os.environ.get("SCHEDULER_TYPE"):
        case "redis" if "REDIS_URL" in os.environ:
            return "env:REDIS_URL"
        case "memory":
            return "memory://"
        case None if not any(name.startswith(("ROTA_URL", "ROTA_REDIS_")) for name in os.environ):
            return "memory://"
        case _:
            return None


@asynccontextmanager
async def open_model() -> AsyncGenerator[httpx.AsyncClient]:
    """Each worker opens one client, for all its runs."""
    async with httpx.AsyncClient(base_url=MODEL, timeout=60) as model:
        yield model


app = Rota(store_url(), name="agent_dispatch", resources=open_model)


@app.task(max_pending=100, retry=Retry(3), description="Answer a message in some steps.")
async def run_task(ctx: Context, message: str, steps: int = 3) -> list[str]:
    """A step that is done is kept: after a pause, a crash or a failure the agent goes on with the next one."""
    model: httpx.AsyncClient = ctx.resources
    done: list[str] = ctx.saved or []
    while len(done) < steps:
        thought = await model.post("/think", json={"run": ctx.run.id, "step": len(done) + 1, "message": message})
        done = [*done, thought.raise_for_status().json()["text"]]
        ctx.checkpoint(done)
        ctx.progress(len(done) / steps, done[-1])
    return done
