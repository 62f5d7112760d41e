"""The orders of events in small worlds: the promises hold at every step, and all stores tell the same."""

import pathlib
from collections.abc import Iterator, Sequence
from random import Random
from typing import Any

import pytest
from msgspec.structs import replace

from rota.domain import settlement as rules
from rota.domain.joins import REPLACED, afresh
from rota.domain.run import Attempt, RunHead, State
from rota.domain.settlement import Settlement, Verdict
from rota.stores.ledger import admit, claim, holds, settle
from rota.stores.memory.lanes import Lanes
from rota.stores.sqlite import SqliteBackend
from storekit.walk import WORLDS, Broken, Path, Walk, replay, walk
from tests.contract.test_redis import a_namespace_of
from tests.postgres_schemas import NEWEST, Schemas
from tests.server_fixtures import Servers

STATES = 3_000
ENOUGH = 8_000
"""States within which a broken rule is found."""
SOAK_STATES = 1_000_000


@pytest.mark.parametrize("world", WORLDS)
def test_every_promise_holds_in_the_first_states(world: str) -> None:
    walked = walk(WORLDS[world], STATES)
    assert walked.complete or walked.states == STATES
    assert walked.endings > 100


@pytest.mark.soak
@pytest.mark.parametrize("world", WORLDS)
def test_every_promise_holds_in_a_million_states(world: str) -> None:
    walked = walk(WORLDS[world], SOAK_STATES)
    assert walked.complete or walked.states == SOAK_STATES


def paths(world: str, seed: int, count: int) -> Iterator[Path]:
    walked, dice = Walk(WORLDS[world]), Random(seed)
    return (walked.wander(dice, 40) for _ in range(count))


@pytest.mark.parametrize("world", WORLDS)
async def test_sqlite_tells_paths_of_the_walk_as_the_ledger_does(
    world: str, search_seed: int, tmp_path: pathlib.Path
) -> None:
    for number, path in enumerate(paths(world, search_seed, 12)):
        await replay(WORLDS[world], path, SqliteBackend(tmp_path / f"{number}.db"))


@pytest.mark.parametrize("world", WORLDS)
async def test_redis_tells_paths_of_the_walk_as_the_ledger_does(world: str, search_seed: int, servers: Servers) -> None:
    url = servers.get("valkey-9").url
    for path in paths(world, search_seed, 20):
        await replay(WORLDS[world], path, a_namespace_of(url))


@pytest.mark.parametrize("world", WORLDS)
async def test_postgres_tells_paths_of_the_walk_as_the_ledger_does(
    world: str, search_seed: int, schemas: Schemas
) -> None:
    for path in paths(world, search_seed, 8):
        await replay(WORLDS[world], path, await schemas.emptied(NEWEST))


@pytest.mark.soak
@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("kind", ["sqlite", "valkey-9", NEWEST])
async def test_all_stores_tell_many_paths_of_the_walk_as_the_ledger_does(
    world: str, kind: str, search_seed: int, tmp_path: pathlib.Path, request: pytest.FixtureRequest
) -> None:
    schemas: Schemas = request.getfixturevalue("schemas")
    servers: Servers = request.getfixturevalue("servers")
    for number, path in enumerate(paths(world, search_seed, 1000)):
        if kind == "sqlite":
            await replay(WORLDS[world], path, SqliteBackend(tmp_path / f"{number}.db"))
        elif kind == NEWEST:
            await replay(WORLDS[world], path, await schemas.emptied(NEWEST))
        else:
            await replay(WORLDS[world], path, a_namespace_of(servers.get(kind).url))


# What the walk must find: a rule of the ledger is broken on purpose, and a promise breaks.


def without_fences(run: RunHead | None, said: Settlement, now: float) -> Verdict:
    """Whoever settles counts as the holder."""
    if run is None or run.state is not State.RUNNING:
        return rules_judge(run, said, now)
    return rules_judge(run, replace(said, fence=run.fence, worker=run.worker or ""), now)


def without_leases(run: RunHead | None, said: Settlement, now: float) -> Verdict:
    return rules_judge(run, replace(said, lost=False), now)


def twice(run: RunHead | None, said: Settlement, now: float) -> Verdict:
    """A resend is applied once more."""
    verdict = rules_judge(run, said, now)
    return Verdict.APPLIED if verdict is Verdict.ALREADY else verdict


def early(lanes: Lanes, names: Sequence[str], now: float, *wanted: Any) -> Iterator[Any]:
    return lanes_due(lanes, names, now + 100, *wanted)


def early_heads(lanes: Lanes, names: Sequence[str], now: float) -> Iterator[Any]:
    return ((lane, priority, 0.0) for lane, priority, _ in lanes_heads(lanes, names, now + 100))


def unfinal(run: Any, now: float, note: str | None, *reason: Any) -> Any:
    return replace(run, note="too late") if run.state.final else rules_cancel(run, now, note, *reason)


def told_each_time(run: Any, now: float) -> Any:
    """Each join with other arguments adds a row to the attempts."""
    rows = (*run.attempts, Attempt(run.fence, "", REPLACED, now, now)) if run.attempts else ()
    return replace(afresh(run, now), attempts=rows)


rules_judge, rules_cancel, lanes_due, lanes_heads = rules.judge, rules.cancel, Lanes.due, Lanes.heads
BREAKS: dict[str, tuple[str, object, str, object, str]] = {
    "any fence settles": ("leases", rules, "judge", without_fences, "did not hold"),
    "a living worker is rescued": ("leases", rules, "judge", without_leases, "living worker"),
    "a resend counts again": ("limit", rules, "judge", twice, "was final and changed"),
    "limits are not counted": ("limit", claim, "gate_of", lambda book, task, named: None, "than the limit allows"),
    "runs start early": ("unique", Lanes, "due", early, "before it was due"),
    "a cancel changes what has ended": ("limit", rules, "cancel", unfinal, "was final and changed"),
    "losses are not charged": ("limit", rules, "_charged", lambda run, said: run, "miscounted"),
    "an ended run releases nobody": ("needs", holds, "meet_needs", lambda book, met: None, "never ends"),
    "an ended run frees no place": ("limit", holds, "freed", lambda book, run: None, "never ends"),
    "a resume does nothing": ("limit", rules, "resume", lambda run, note: run, "never ends"),
    "a retry waits beside its equal": ("unique", settle, "_give_way", lambda book, run: run, "two equal runs wait"),
    "other arguments keep the past": ("joins", admit, "afresh", lambda run, now: run, "kept the past"),
    "each join tells of a replacement": ("joins", admit, "afresh", told_each_time, "tells twice"),
    "a tick waits beside a retry": ("joins", admit, "_equals_of", lambda book, new: [], "two equal runs wait"),
    "every newcomer comes in": ("unique", admit, "_refusal", lambda book, new: None, "two equal runs wait"),
}


@pytest.mark.parametrize("name", BREAKS)
def test_the_walk_finds_a_broken_rule(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    world, owner, rule, broken, promise = BREAKS[name]
    if rule == "due":  # a lane is looked at before its runs are
        monkeypatch.setattr(Lanes, "heads", early_heads)
    monkeypatch.setattr(owner, rule, broken)
    with pytest.raises(Broken, match=promise) as found:
        walk(WORLDS[world], ENOUGH)
    assert "The way there:" in str(found.value)


def test_a_tick_that_is_fired_whatever_happened_since_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def fire(book: Any, tick: Any) -> Any:
        schedule = book.schedule(tick.schedule)
        return fired(book, replace(tick, version=schedule.version, next_at=schedule.next_at))

    fired = admit._fire  # pyright: ignore[reportPrivateUsage]
    monkeypatch.setattr(admit, "_fire", fire)
    with pytest.raises(Broken, match="fired twice"):
        Walk(WORLDS["limit"]).go(ENOUGH)
