"""Every verb with its request lost, and with its reply lost after the server had carried it out, on both servers.

Each is tried beside a twin of its store to which nothing happens: what the two then hold is the same.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import msgspec
import pytest

from rota.domain.decision import Decision, DecisionCount, Reason
from rota.domain.guards import Mark
from rota.domain.lifecycle import Succeeded, settlement_of
from rota.domain.run import Note
from rota.domain.schedule import Schedule
from rota.domain.settlement import Verdict
from rota.domain.spec import TaskSpec
from rota.store import (
    ID_MEMORY,
    Backend,
    ClaimRequest,
    Command,
    Declared,
    Edited,
    EventQuery,
    Fired,
    MarkRow,
    Report,
    Retention,
    RunEdit,
    RunQuery,
    Scope,
    Store,
    Tally,
    WorkerSeen,
)
from rota.stores.postgres import PostgresBackend
from storekit.contract import Stage, new_run
from storekit.contract.naming_runs import own
from storekit.contract.stage import GREET, LEASE
from storekit.contract.timetable import REPORT, Timetable, new_schedule, new_tick, tick_run
from storekit.proxy import Fault, FaultProxy
from storekit.servers import PostgresServer, RedisServer
from tests.postgres_schemas import NEWEST, Schemas
from tests.requirement import requirement
from tests.stores.redis_stages import at

SUCCESS = Tally(GREET, succeeded=1)
KEYED = MarkRow(GREET, "k", Mark(finished_at=1.0))
TINY = Retention(succeeded=0, failed=0, most=0, least=0)
INSTANTS = 1e9
"""Numbers above it are points in time, which differ from store to store."""

Do = Callable[[Store], Awaitable[Any]]


@dataclass(frozen=True)
class Verb:
    """A call on a store that was prepared for it, and what it answers if it finds its work done already."""

    plan: Callable[[Stage], Awaitable[Do]]
    again: Any = None
    """None: the same as the first time."""
    is_read: bool = False
    is_refusal: bool = False
    """A refusal is not remembered by the id of its run: the decision is the same, but is counted again."""


async def one_of_each(stage: Stage) -> None:
    """A run in each state, a schedule that is due, marks and decisions; and what a sweep would take."""
    await stage.ended(new_run(id="old"))
    await stage.put(new_run(id="late", expires_after=60))
    stage.wait(10 * ID_MEMORY)
    await Timetable(stage).due()
    await stage.ended(new_run(id="ended", key="k", unique="done"))
    await stage.put(new_run(id="paused"))
    await stage.pause(new_run(id="paused"), "for now")
    await stage.running(new_run(id="running"))
    await stage.put(new_run(id="queued", key="q"), new_run(id="later", delay=600))


async def fire(stage: Stage) -> Do:
    tick = new_tick(await Timetable(stage).see(), tick_run("tick"))
    return lambda store: store.fire([tick])


async def settle(stage: Stage) -> Do:
    ending = settlement_of(await stage.see(new_run(id="running")), Succeeded(b"1"))
    return lambda store: store.settle([ending])


async def renew(stage: Stage) -> Do:
    lease = (await stage.see(new_run(id="running"))).lease
    return lambda store: store.renew([lease], LEASE, {"running": Note(saved=b"3")})


def now(do: Do) -> Callable[[Stage], Awaitable[Do]]:
    """A call that needs to know nothing of the store."""

    async def known(_: Stage) -> Do:
        return do

    return known


VERBS = {
    "put": Verb(now(lambda store: store.put([new_run(id="new", key="n", unique="active"), new_run(id="plain")]))),
    "put an id of its own": Verb(now(lambda store: store.put([own(id="mine")])), [Decision("mine", Reason.JOINED)]),
    "put what is refused": Verb(
        now(lambda store: store.put([new_run(id="no", key="k", unique="done", join="refuse")])), is_refusal=True
    ),
    "fire": Verb(fire, [Fired(False)]),
    "claim": Verb(
        now(lambda store: store.claim(ClaimRequest("bob", 1, [GREET], 5, LEASE, Report(tallies=(SUCCESS,)))))
    ),
    "claim nothing": Verb(now(lambda store: store.claim(ClaimRequest("bob", 1, ["other"], 5, LEASE)))),
    "renew": Verb(renew),
    "settle": Verb(settle, [Verdict.ALREADY]),
    "cancel": Verb(now(lambda store: store.control(Command.CANCEL, ["queued", "running"], "no", "eve")), [0, 1]),
    "freeze": Verb(now(lambda store: store.freeze(True, 2e9, "no", "eve")), [False]),
    "edit": Verb(
        now(lambda store: store.edit([RunEdit(run="later", due_at=2e9, priority=3)], "sooner", "eve")),
        [Edited.UNCHANGED],
    ),
    "delete": Verb(now(lambda store: store.control(Command.DELETE, ["old", "ended"], "gone")), [0, 0]),
    "pause tasks": Verb(now(lambda store: store.control(Command.PAUSE, [GREET], "no", of=Scope.TASKS)), [0]),
    "drop tasks": Verb(now(lambda store: store.control(Command.DROP, [GREET], of=Scope.TASKS)), [0]),
    "pause schedules": Verb(now(lambda store: store.control(Command.PAUSE, [REPORT], of=Scope.SCHEDULES)), [0]),
    "declare": Verb(
        now(lambda store: store.declare([TaskSpec("other"), new_schedule("daily", 2e9)])),
        [Declared.UNCHANGED, Declared.UNCHANGED],
    ),
    "mark": Verb(now(lambda store: store.mark([KEYED, MarkRow(GREET, "x", None)])), [False, False]),
    "sweep": Verb(now(lambda store: store.sweep(TINY)), {"expired": 0, "forgotten": 0, "more": False, "ended": []}),
    "events": Verb(now(lambda store: store.events(EventQuery()))),
    "runs": Verb(now(lambda store: store.runs(RunQuery())), is_read=True),
    "rows": Verb(now(lambda store: store.rows(Schedule)), is_read=True),
    "stats": Verb(now(lambda store: store.stats()), is_read=True),
    "depths": Verb(now(lambda store: store.depths()), is_read=True),
}


def timeless(value: object) -> Any:
    """Without what the clock said."""
    if isinstance(value, dict):
        return {name: timeless(item) for name, item in value.items() if name not in ("now", "cursor", "wake")}
    if isinstance(value, list | tuple):
        return [timeless(item) for item in value]
    if isinstance(value, float):
        return "then" if value > INSTANTS else round(value)
    return value


def plainly(value: object) -> Any:
    return timeless(msgspec.to_builtins(value, builtin_types=(bytes,)))


async def everything(store: Store, cursor: str) -> dict[str, Any]:
    """All that can be read of a store, and the events after `cursor`."""
    rows = {kind.__name__: await store.rows(kind) for kind in (TaskSpec, WorkerSeen, Schedule, MarkRow, DecisionCount)}
    runs, stats, depths = await store.runs(RunQuery(limit=1000)), await store.stats(), await store.depths()
    events = await store.events(EventQuery(after=cursor))
    parts = {**rows, "runs": runs, "stats": stats, "depths": depths, "events": events}
    return {name: plainly(part) for name, part in parts.items()}


class Place:
    """A server, and how to have empty stores on it, straight and through a proxy."""

    def __init__(self, server: RedisServer | PostgresServer, schemas: Schemas, namespace: str) -> None:
        self.server = server
        self._schemas = schemas
        self._namespace = namespace

    async def straight(self) -> Backend:
        if isinstance(self.server, RedisServer):
            return at(self.server.url, f"{self._namespace}-twin")
        return await self._schemas.emptied(NEWEST)

    async def through(self, proxy: FaultProxy) -> Backend:
        url = self.server.url_at(proxy.address)
        if isinstance(self.server, RedisServer):
            return at(url, self._namespace)
        schema = (await self._schemas.emptied(NEWEST)).address.schema
        return PostgresBackend.from_url(f"{url}{'&' if '?' in url else '?'}schema={schema}")


@pytest.fixture(params=["valkey", "postgres"])
def place(request: pytest.FixtureRequest, schemas: Schemas, namespace: str) -> Place:
    return Place(request.getfixturevalue(request.param), schemas, namespace)


@asynccontextmanager
async def prepared(backend: Backend) -> AsyncGenerator[tuple[Stage, str]]:
    """A store in which something is there to be done, and where its events begin."""
    async with backend.open() as store:
        stage = Stage(backend, store)
        await one_of_each(stage)
        cursor = (await store.events(EventQuery())).cursor
        await everything(store, cursor)  # so that the connection knows every question: the next request is its asking
        yield stage, cursor


def its_request(backend: Backend, verb: Verb) -> bytes:
    """What the carrying out of the verb has in it, and its preparation has not."""
    if not isinstance(backend, PostgresBackend):
        return b"FCALL"
    return b"" if verb.is_read else backend.me.encode()


@requirement("4.6")
@pytest.mark.parametrize("fault", ["cut before", "cut after"])
@pytest.mark.parametrize("name", VERBS)
async def test_a_verb_whose_request_or_reply_is_lost_is_done_once(place: Place, name: str, fault: Fault) -> None:
    verb = VERBS[name]
    async with prepared(await place.straight()) as (twin, cursor):
        do = await verb.plan(twin)
        answer, state = plainly(await do(twin.store)), await everything(twin.store, cursor)
    async with FaultProxy(place.server.address) as proxy:
        backend = await place.through(proxy)
        async with prepared(backend) as (stage, cursor):
            do = await verb.plan(stage)
            proxy.fail_next(fault, match=its_request(backend, verb))
            given = plainly(await do(stage.store))
            assert proxy.struck == [fault]
            after = await everything(stage.store, cursor)
    if fault == "cut after" and verb.is_refusal:
        state["events"]["events"] *= 2
        for decided in state["DecisionCount"]["items"]:
            decided["count"] += decided["run"] == "no"
    assert after == state
    if fault == "cut after" and verb.again is not None:
        assert given.get("items", given) == plainly(verb.again) != answer.get("items", answer)
    else:
        assert given == answer
