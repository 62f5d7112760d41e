"""Pull workers: claim, renew and settle over HTTP. A worker is known as `<credential>/<worker>`."""

import asyncio
from typing import Any

from msgspec.structs import replace

from rota.app.core import core_of
from rota.pull.values import ClaimBody, Pulled, RenewBody, Renewed, SettleBody, Settled
from rota.web.problems import Flaw, Problem
from rota.web.rights import Right, is_own
from rota.web.routes import API, Answer, Call, NoQuery, Route, post
from rota.web.submitting import forbidden


def _worker(call: Call[Any, Any], name: str) -> str:
    """Return the name under which the store knows the worker: no credential reaches the leases of another."""
    return f"{call.principal.name}/{name}"


async def claim(call: Call[NoQuery, ClaimBody]) -> Answer:
    body, who = call.body, call.principal
    for place, task in enumerate(body.tasks):
        if is_own(task) or not who.may(Right.WORK, task):
            raise forbidden(who, Right.WORK, task, [Flaw(f"/tasks/{place}", "not allowed")])
    foreign = [queue for queue in body.queues if who.queues and queue not in who.queues]
    if foreign:
        raise Problem(403, f"{who.name} may not claim from the queue {foreign[0]}")
    asked = replace(body, queues=body.queues or list(who.queues))
    return Answer(await call.pulling.claim(_worker(call, body.worker), asked, lambda: _gone(call)))


async def _gone(call: Call[Any, Any]) -> None:
    """Return when the caller has gone, or the service stops: nobody would get what a claim finds from now on."""
    stopping: asyncio.Event = call.request.scope["state"].get("stopping") or asyncio.Event()
    waits = [asyncio.ensure_future(_disconnected(call)), asyncio.ensure_future(_set(stopping))]
    hears = core_of(call.app).on_termination
    hears.append(stopping.set)
    try:
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    finally:
        hears.remove(stopping.set)
        for wait in waits:
            wait.cancel()


async def _disconnected(call: Call[Any, Any]) -> None:
    while (await call.request.receive())["type"] != "http.disconnect":
        continue


async def _set(event: asyncio.Event) -> None:
    await event.wait()


async def renew(call: Call[NoQuery, RenewBody]) -> Answer:
    return Answer(await call.pulling.renew(_worker(call, call.body.worker), call.body))


async def settle(call: Call[NoQuery, SettleBody]) -> Answer:
    return Answer(await call.pulling.settle(_worker(call, call.body.worker), call.body.outcomes))


ROUTES: list[Route[Any, Any]] = [
    post(f"{API}/claim", "Claim runs for a pull worker", Right.WORK, claim, ClaimBody, {200: Pulled}, (409,)),
    post(f"{API}/renew", "Extend the leases of a pull worker", Right.WORK, renew, RenewBody, {200: Renewed}),
    post(f"{API}/settle", "Say what became of runs", Right.WORK, settle, SettleBody, {200: Settled}),
]
