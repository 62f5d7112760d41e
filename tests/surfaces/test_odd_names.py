"""Ids and names from outside that no store can hold: answered in words of rota, the same on every store."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from rota import (
    InvalidOptions,
    Reason,
    Rota,
    RunNotFound,
    ScheduleNotFound,
    UnknownTask,
)
from rota.store import Backend
from rota.stores import connect
from tests.contract.test_redis import a_namespace_of
from tests.postgres_schemas import NEWEST, Schemas
from tests.server_fixtures import Servers

ODD = ["a\x00b", "\x00", "a\ud800b", "x" * 5000, ""]
STORES = ("memory", "sqlite", "redis", "postgres")


@pytest.fixture(params=STORES)
async def app(request: pytest.FixtureRequest, servers: Servers, schemas: Schemas, tmp_path: Path) -> Rota:
    kind: str = request.param
    backend: Backend
    if kind == "postgres":
        backend = await schemas.emptied(NEWEST)
    elif kind == "redis":
        backend = a_namespace_of(servers.get("valkey-9").url)
    else:
        backend = connect({"memory": "memory://", "sqlite": f"sqlite:///{tmp_path / 'rota.db'}"}[kind])
    return Rota(backend)


Call = Callable[[Rota, str], Awaitable[Any]]
RAISES: dict[str, tuple[Call, type[Exception]]] = {
    "result": (lambda app, name: app.handle(name).result(timeout=30), RunNotFound),
    "refresh": (lambda app, name: app.handle(name).refresh(), RunNotFound),
    "retry": (lambda app, name: app.handle(name).retry(), RunNotFound),
    "submit": (lambda app, name: app.submit(name), InvalidOptions),
    "pause task": (lambda app, name: app.pause(name), InvalidOptions),
    "resume task": (lambda app, name: app.resume(name), InvalidOptions),
    "clear": (lambda app, name: app.clear(name), InvalidOptions),
    "why": (lambda app, name: app.why(name), UnknownTask),
    "schedule": (lambda app, name: app.schedules.get(name), ScheduleNotFound),
    "pause schedule": (lambda app, name: app.schedules.pause(name), ScheduleNotFound),
    "delete schedule": (lambda app, name: app.schedules.delete(name), ScheduleNotFound),
}


async def test_every_store_answers_alike(app: Rota) -> None:
    async with app.client():
        for what, (call, expected) in RAISES.items():
            for name in ODD:
                with pytest.raises(Exception) as raised:  # noqa: PT011 (the type is compared below)
                    await call(app, name)
                assert type(raised.value) is expected, (what, name[:5])
        for name in ODD:
            assert (await app.touch(name)).reason is Reason.UNKNOWN_TASK
            handle = app.handle(name)
            assert [await handle.cancel(), await handle.pause(), await handle.resume()] == [False] * 3


async def test_one_waiter_with_an_odd_id_harms_no_other(app: Rota) -> None:
    @app.task
    async def double(n: int) -> int:
        return 2 * n

    async with app:
        handles = [await double.using(delay=0.2).submit(n) for n in range(5)]
        odd = [asyncio.create_task(app.handle(name).result(timeout=30)) for name in ODD]
        results = await asyncio.gather(*(handle.result(timeout=30) for handle in handles))
        answers = await asyncio.gather(*odd, return_exceptions=True)
    assert results == [0, 2, 4, 6, 8]
    assert {type(answer) for answer in answers} == {RunNotFound}
    assert "it never was, or it ended so long ago" in str(answers[0])
