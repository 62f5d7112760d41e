"""`rota move`: everything that waits goes to another store, once, at its times."""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

import pytest
from msgspec.structs import replace

from rota import DailyAt, Every, Rota, State
from rota.cli import run as command
from rota.client.transfer import PAGE, move
from rota.domain.guards import Mark
from rota.domain.lifecycle import Crashed, settlement_of
from rota.domain.run import Failure, Run
from rota.domain.spec import TaskSpec
from rota.errors import StoreUnavailable
from rota.store import ClaimRequest, Command, MarkRow, Reply, RunQuery, Scope, Store
from rota.stores.memory import MemoryBackend
from rota.stores.sqlite import SqliteBackend
from rota.task import call_of
from storekit.faults import Fault, FaultyBackend
from tests.surfaces.called import Called
from tests.surfaces.called import waiting as waiting_run
from tests.surfaces.project import Project

START = datetime(2030, 1, 1, tzinfo=UTC)


def read(page: int) -> None: ...


class Office:
    """A store with something of everything in it."""

    def __init__(self, backend: MemoryBackend | FaultyBackend | None = None) -> None:
        self.app = Rota(backend or MemoryBackend(), name="office")
        self.work = self.app.task(name="work")(read)

    async def fill(self) -> Store:
        app, work = self.app, self.work
        await app.schedules.put("daily", DailyAt(9), work.bind(1), catch_up="skip")
        await app.schedules.put("paused", Every(60), work.bind(2))
        await app.schedules.pause("paused", "by me")
        self.later = await work.using(at=START, priority=7, key="k", unique="queued").submit(3)
        self.held = await work.submit(4)
        await self.held.pause()
        await app.schedules.backfill("daily", datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 3, 23, tzinfo=UTC))
        store = await app.client().store()
        await store.mark([MarkRow("work", "k", Mark(succeeded_at=1.0, finished_at=1.0))])
        return store


async def waiting(store: Store) -> list[Run]:
    return (await store.runs(RunQuery(state=[State.QUEUED, State.PAUSED], limit=1000))).runs


@asynccontextmanager
async def new_store(tmp_path: Path) -> AsyncIterator[tuple[Rota, Store]]:
    app = Rota(SqliteBackend(tmp_path / "new.db"))
    async with app.client():
        yield app, await app.client().store()


async def test_schedules_keep_their_next_tick_runs_their_due_time_and_marks_their_word(tmp_path: Path) -> None:
    office = Office()
    old = await office.fill()
    before = {schedule.id: schedule for schedule in await office.app.schedules.list()}
    runs = {run.id: run for run in await waiting(old)}
    async with new_store(tmp_path) as (app, new):
        moved = await move(old, new, "ops")

        assert (moved.schedules, moved.runs, moved.marks, moved.running) == (2, 5, 1, 0)
        after = {schedule.id: schedule for schedule in await app.schedules.list()}
        assert {id: (s.next_at, s.since, s.paused, s.note, s.trigger) for id, s in after.items()} == {
            id: (s.next_at, s.since, s.paused, s.note, s.trigger) for id, s in before.items()
        }
        there = {run.id: run for run in await waiting(new)}
        assert {id: (run.due_at, run.key, run.priority, run.args, run.needs) for id, run in there.items()} == {
            id: (run.due_at, run.key, run.priority, run.args, run.needs) for id, run in runs.items()
        }
        assert there[office.held.id].state is State.PAUSED
        assert [run.state for run in there.values()].count(State.PAUSED) == 1
        assert (await new.rows(MarkRow)).items == (await old.rows(MarkRow)).items
    assert await waiting(old) == []
    assert await office.app.schedules.list() == []


@pytest.mark.parametrize("verb", ["control", "declare", "put", "mark"])
@pytest.mark.parametrize("fault", ["request lost", "reply lost"])
@pytest.mark.parametrize("after", range(4))
async def test_interrupted_anywhere_it_moves_the_rest_the_next_time(verb: str, fault: Fault, after: int) -> None:
    source, target = FaultyBackend(MemoryBackend()), FaultyBackend(MemoryBackend())
    office = Office(source)
    await office.fill()
    before = {run.id: run.needs for run in await waiting(await office.app.client().store())}
    async with source.open() as old, target.open() as new:
        for broken in (source, target):
            broken.fail(verb, fault, after=after)
            with suppress(StoreUnavailable):
                await move(old, new)
            broken.heal()
        await move(old, new)
        there = await waiting(new)
        assert {run.id: run.needs for run in there} == before
        assert [run.id for run in there if run.state is State.PAUSED] == [office.held.id]
        assert await waiting(old) == []
    schedules = await Rota(target).schedules.list()
    assert [(schedule.id, schedule.paused) for schedule in schedules] == [("daily", False), ("paused", True)]


async def test_a_chain_longer_than_a_page_still_waits_link_by_link(tmp_path: Path) -> None:
    office = Office()
    begin = datetime(2026, 1, 1, tzinfo=UTC)
    await office.app.schedules.put("minutely", Every(60, anchor=begin), office.work.bind(1))
    await office.app.schedules.backfill("minutely", begin, begin + timedelta(minutes=PAGE))
    old = await office.app.client().store()
    async with new_store(tmp_path) as (_, new):
        await move(old, new)
        needs = [run.needs for run in (await new.runs(RunQuery(limit=PAGE + 10))).runs]
    assert len(needs) == PAGE + 1
    assert sum(map(len, needs)) == PAGE, "all but the first wait for one"


async def test_what_runs_stays_and_is_told(tmp_path: Path) -> None:
    office = Office()
    old = await office.fill()
    (run,) = (await old.claim(ClaimRequest("w", 1, ["work"], 1, 30))).runs
    async with new_store(tmp_path) as (_, new):
        moved = await move(old, new)
        assert moved.running == 1
        assert run.id not in {there.id for there in await waiting(new)}


async def test_what_waits_for_something_that_stays_does_not_start_early_there(tmp_path: Path) -> None:
    office = Office()
    old = await office.app.client().store()
    first = await office.work.submit(1)
    await old.claim(ClaimRequest("w", 1, ["work"], 1, 30))
    second, third = (
        replace(call_of(office.work.bind(n)).to_run(), needs=(needed,)) for n, needed in ((2, first.id), (3, ""))
    )
    third = replace(third, needs=(second.id,))
    await old.put([second, third, free := call_of(office.work.bind(4)).to_run()])
    async with new_store(tmp_path) as (_, new):
        moved = await move(old, new)
        assert (moved.runs, moved.left, moved.running) == (1, 2, 1)
        assert [run.id for run in await waiting(new)] == [free.id]
    assert [run.id for run in await waiting(old)] == [third.id, second.id]


async def test_what_a_task_has_waiting_goes_even_if_it_is_switched_off(tmp_path: Path) -> None:
    office = Office()
    old = await office.app.client().store()
    run = await office.work.submit(1)
    await old.declare([TaskSpec("work", enabled=False)])
    async with new_store(tmp_path) as (_, new):
        assert (await move(old, new)).runs == 1
        assert [there.id for there in await waiting(new)] == [run.id]
        assert [spec.enabled for spec in (await new.rows(TaskSpec)).items] == [False]


async def test_what_the_other_store_does_not_take_stays(tmp_path: Path) -> None:
    office = Office()
    old = await office.app.client().store()
    await office.work.submit(1)
    await office.work.submit(2)
    small = MemoryBackend(capacity=1)
    async with small.open() as new:
        moved = await move(old, new)
        assert (moved.runs, moved.left, len(await waiting(new))) == (1, 1, 1)
    assert [run.state for run in await waiting(old)] == [State.QUEUED]


class Busy:
    """A store in which something happens just before runs are held."""

    def __init__(self, store: Store, meanwhile: Callable[[], Awaitable[object]]) -> None:
        self._store, self._meanwhile = store, meanwhile

    def __getattr__(self, verb: str) -> Any:
        return getattr(self._store, verb)

    async def control(self, command: Command, names: Sequence[str], *said: Any) -> Reply[int]:
        if command is Command.PAUSE and Scope.SCHEDULES not in said:
            await self._meanwhile()
        return await self._store.control(command, names, *said)


async def test_what_a_run_was_given_while_it_was_looked_at_goes_with_it(tmp_path: Path) -> None:
    office = Office()
    keyed = office.work.using(key="k", unique="queued")
    run = await keyed.submit(1)
    old = Busy(await office.app.client().store(), lambda: keyed.submit(2))
    async with new_store(tmp_path) as (_, new):
        assert (await move(cast("Store", old), new)).runs == 1
        assert [(there.id, there.args) for there in await waiting(new)] == [(run.id, b'{"page":2}')]


async def test_what_an_interrupted_move_held_waits_again_if_it_is_not_taken() -> None:
    source, small = FaultyBackend(MemoryBackend()), MemoryBackend(capacity=0)
    office = Office(source)
    run = await office.work.submit(1)
    async with source.open() as old, small.open() as new:
        source.fail("control", "reply lost")
        with pytest.raises(StoreUnavailable):
            await move(old, new)
        source.heal()
        assert [(held.id, held.state) for held in await waiting(old)] == [(run.id, State.PAUSED)]
        assert (await move(old, new)).left == 1
        assert [(back.id, back.state) for back in await waiting(old)] == [(run.id, State.QUEUED)]


def test_the_command_tells_how_many_begin_afresh(
    rota: Called, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async def try_one(store: Store) -> None:
        (run,) = (await store.claim(ClaimRequest("w", 1, ["greet"], 1, 30))).runs
        await store.settle([settlement_of(run, Crashed(Failure("WorkerLost", "killed")))])

    rota.put(waiting_run("abcdef-1"), waiting_run("abcdef-2"))
    rota.store(try_one)
    assert command(["move", "--from", rota.url, "--to", f"sqlite:///{tmp_path}/new.db", "--yes"]) == 0
    assert capsys.readouterr().out.splitlines()[2:-1] == [
        "1 run had been tried before: tries and fences count from zero now, and what was saved is not carried."
    ]


def test_the_command_moves_and_tells(project: Project) -> None:
    project.rota("submit", "greet", "name=Ada", "--delay", "3600")
    old = project.url
    new = f"sqlite:///{project.folder}/new.db"
    done = project.rota("move", "--from", old, "--to", new)
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("Moved 0 schedules, 1 run and 0 marks from ")
    assert done.out.splitlines()[1:] == [
        "In the old store, the moved schedules are deleted and the moved runs are cancelled.",
        f"Next: set ROTA_URL={new}, or url in rota.toml, wherever workers start and programs submit.",
    ]
    assert len(project.rota("runs", "ls", "--url", new, "--json").json) == 1
    assert project.rota("move", "--from", old, "--to", old).code == 2


def test_a_store_with_a_live_worker_is_left_only_with_a_yes(
    rota: Called, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rota.put(waiting_run("abcdef-1"))
    rota.store(lambda store: store.claim(ClaimRequest("w", 0, ["greet"], 1, 30)))
    moving = ["move", "--from", rota.url, "--to", f"sqlite:///{tmp_path}/new.db"]
    assert command(moving) == 1
    assert capsys.readouterr().err == (
        f"rota: 1 worker is alive on {rota.url}: stop the workers first (rota workers lists them), "
        "or move all the same with --yes\n"
    )
    assert not (tmp_path / "new.db").exists()
    assert command([*moving, "--yes"]) == 0
    assert capsys.readouterr().out.startswith("Moved 0 schedules, 1 run ")


def test_a_dry_run_counts_and_changes_nothing(rota: Called, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rota.put(waiting_run("abcdef-1"), waiting_run("abcdef-2"))
    rota.store(lambda store: store.claim(ClaimRequest("w", 1, ["greet"], 1, 30)))
    target = f"sqlite:///{tmp_path}/new.db"
    assert command(["move", "--from", rota.url, "--to", target, "--dry-run"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        f"Would move 0 schedules, 1 run and 0 marks from {rota.url} to {target}; nothing was changed.",
        "1 run running there would stay, and so would what waits for its end.",
    ]
    assert not (tmp_path / "new.db").exists()
    assert [run["state"] for run in rota.json("runs", "ls")] == ["queued", "running"]


async def test_a_task_that_is_paused_until_an_instant_there_stays_so(tmp_path: Path) -> None:
    office = Office()
    old = await office.fill()
    async with new_store(tmp_path) as (app, new):
        await app.pause("work", until=START)
        await move(old, new)
        (spec,) = [spec for spec in (await new.rows(TaskSpec)).items if spec.name == "work"]
    assert (spec.paused, spec.paused_until) == (True, START.timestamp())
