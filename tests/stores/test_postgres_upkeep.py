"""What is no run: marks that are kept as long as they are read, and schedules of a newer version."""

import logging
from collections.abc import AsyncIterator

import asyncpg
import pytest

from rota.domain.guards import Cooldown, Guards, Mark
from rota.domain.schedule import Schedule
from rota.domain.spec import TaskSpec
from rota.store import MarkRow, Retention
from rota.stores.postgres import PostgresBackend
from rota.stores.retention import MARK_MEMORY
from storekit.contract import Stage
from storekit.contract.stage import GREET
from storekit.contract.timetable import MINUTE, Timetable

DAY = 86_400.0


@pytest.fixture
async def stage(postgres_backend: PostgresBackend) -> AsyncIterator[Stage]:
    async with postgres_backend.open() as store:
        yield Stage(postgres_backend, store)


async def kept(stage: Stage) -> list[str]:
    await stage.store.sweep(Retention())
    return [row.task for row in (await stage.store.rows(MarkRow)).items]


async def test_marks_are_kept_as_long_as_a_policy_of_their_task_reads_them(stage: Stage) -> None:
    rest = Guards(cooldowns=(Cooldown(0, 20 * DAY), Cooldown(3, 5 * DAY)))
    specs = [TaskSpec("done", guards=Guards("done")), TaskSpec("rests", guards=rest), TaskSpec("usual")]
    await stage.store.declare(specs)
    mark = Mark(succeeded_at=await stage.now(), finished_at=await stage.now())
    tasks = ["done", "rests", "unknown", "usual"]
    await stage.store.mark([MarkRow(task, "k", mark) for task in tasks])
    stage.wait(MARK_MEMORY - 1)
    assert await kept(stage) == tasks
    stage.wait(2)
    assert await kept(stage) == ["done", "rests"]
    stage.wait(11.9 * DAY)
    assert await kept(stage) == ["done", "rests"]
    stage.wait(0.2 * DAY)
    assert await kept(stage) == ["done"]
    stage.wait(1000 * DAY)
    assert await kept(stage) == ["done"]
    await stage.store.declare([TaskSpec("done")])
    assert await kept(stage) == []


async def test_a_mark_may_come_many_times_in_one_call(stage: Stage) -> None:
    one, two = MarkRow(GREET, "k", Mark(finished_at=1.0)), MarkRow(GREET, "k", Mark(2.0, 2.0, 0))
    gone = MarkRow(GREET, "k", None)
    assert (await stage.store.mark([one, one, two, gone, gone, one])).items == [True, False, True, True, False, True]
    assert (await stage.store.rows(MarkRow)).items == [one]
    assert (await stage.store.mark([])).items == []
    assert (await stage.store.mark([MarkRow(GREET, "never", Mark())])).items == [False]


@pytest.fixture
async def spoilt(stage: Stage, postgres_backend: PostgresBackend) -> Timetable:
    """Three schedules, one of which is not to be understood."""
    timetable = Timetable(stage)
    for id in ("a", "b", "c"):
        await timetable.add(id)
    connection = await asyncpg.connect(postgres_backend.address.dsn)
    spoil = f"UPDATE {postgres_backend.schema}.schedules SET declared = $1 WHERE id = 'b'"
    await connection.execute(spoil, '{"id":"b","trigger":{"of":"the future"}}')
    await connection.close()
    return timetable


async def test_a_schedule_that_cannot_be_read_spoils_no_other(
    stage: Stage, spoilt: Timetable, caplog: pytest.LogCaptureFixture
) -> None:
    assert [schedule.id for schedule in await spoilt.find("a", "b", "c")] == ["a", "c"]
    assert [schedule.id for schedule in (await stage.store.rows(Schedule)).items] == ["a", "c"]
    stage.wait(MINUTE + 1)
    with caplog.at_level(logging.ERROR, "rota"):
        assert await spoilt.offered() == ["a", "c"]
    assert "schedule b cannot be read by this version" in caplog.text
    caplog.clear()
    stage.wait(3)
    assert await spoilt.offered() == ["a", "c"]
    stage.wait(MINUTE)
    assert await spoilt.offered() == ["a", "c"]
    assert not caplog.records, "it is told of once"


async def test_only_what_that_very_claim_was_offered_is_set_aside(
    stage: Stage, spoilt: Timetable, postgres_backend: PostgresBackend
) -> None:
    stage.wait(MINUTE + 1)
    claimed_at = (await stage.claim()).now
    connection = await asyncpg.connect(postgres_backend.address.dsn)
    schema = postgres_backend.schema
    await connection.execute(f"SELECT {schema}.set_aside('', 0, 0, '{{a}}', $1, 60)", claimed_at - 1)
    looks = await connection.fetch(f"SELECT id, look_at FROM {schema}.schedules ORDER BY id")
    await connection.close()
    assert [round(row["look_at"] - claimed_at) for row in looks] == [2, 60, 2]
