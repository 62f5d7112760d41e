"""The API of the platform: agents and their schedules. Any number of processes serve it.

With ROTA_ENABLED=false they only read and write schedules, and a scheduler of its own fires them. With true, each
process has a scheduler inside. Both at once is fine: a tick fires once.
"""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from examples.agent_platform.app import app, call_of
from rota import InvalidOptions, Schedule, ScheduleNotFound


async def put_schedule(request: Request) -> Response:
    """{"agent": "ada", "when": "every day at 9:00", "message": "Write the report"}"""
    body = await request.json()
    try:
        call = call_of(str(body["agent"]), str(body["message"]))
        made = await app.schedules.put(
            request.path_params["id"], str(body["when"]), call, overlap="allow", catch_up="all"
        )
    except (KeyError, InvalidOptions, ValueError) as error:
        raise HTTPException(422, f"a schedule has agent, when and message: {error}") from None
    return JSONResponse(shown(made))


async def delete_schedule(request: Request) -> Response:
    await app.schedules.delete(request.path_params["id"])
    return Response(status_code=204)


async def list_schedules(request: Request) -> Response:
    return JSONResponse([shown(schedule) for schedule in await app.schedules.list()])


async def executions(request: Request) -> Response:
    """Return the last ticks: when, whether there is a run and why not, and how the run ended."""
    try:
        ticks = await app.schedules.ticks(request.path_params["id"])
    except ScheduleNotFound as error:
        raise HTTPException(404, str(error)) from None
    return JSONResponse(
        [
            {
                "at": tick.nominal.isoformat(),
                "reason": tick.reason,
                "run": tick.run_id,
                "state": tick.run and tick.run.state,
            }
            for tick in ticks
        ]
    )


async def health(request: Request) -> Response:
    """Is this process alive, and does it reach the store?"""
    well = await app.health()
    return JSONResponse({"status": "ok" if well else str(well.problem)}, 200 if well else 503)


async def status(request: Request) -> Response:
    return JSONResponse({"scheduler": app.status().running, "jobs": len(await app.schedules.list())})


def shown(schedule: Schedule) -> dict[str, object]:
    return {"id": schedule.id, "next_at": schedule.next_at, "version": schedule.version}


@asynccontextmanager
async def lifespan(api: Starlette) -> AsyncGenerator[None]:
    async with app:
        yield


api = Starlette(
    routes=[
        Route("/schedules", list_schedules),
        Route("/schedules/{id}", put_schedule, methods=["PUT"]),
        Route("/schedules/{id}", delete_schedule, methods=["DELETE"]),
        Route("/schedules/{id}/executions", executions),
        Route("/health", health),
        Route("/status", status),
    ],
    lifespan=lifespan,
)
