"""Decisions: refusals and commands, counted by reason; and the rows of marks, specs and schedules."""

from msgspec.structs import replace

from rota.domain.decision import DecisionCount, Reason
from rota.domain.guards import Cooldown, Mark
from rota.domain.lifecycle import Failed, Released, Succeeded
from rota.domain.policy import Policy
from rota.domain.run import NewRun
from rota.domain.schedule import Schedule
from rota.domain.spec import TaskSpec
from rota.store import ID_MEMORY, Command, MarkRow, Retention, RowQuery, Scope
from storekit.contract.stage import BOOM, GREET, Stage, Staged, new_run
from storekit.contract.timetable import Timetable, new_schedule, new_tick

DAY = 86_400.0


async def decisions(stage: Stage, task: str | None = None, key: str | None = None) -> list[DecisionCount]:
    return (await stage.store.rows(DecisionCount, RowQuery(task=task, key=key))).items


class DecisionContract(Staged):
    async def test_what_is_accepted_leaves_no_decision(self, stage: Stage) -> None:
        new = new_run(key="k", unique="active")
        await stage.put(new, new_run())
        await stage.put(new)
        await stage.end((await stage.claim()).runs[0], Failed(BOOM))
        assert await decisions(stage) == []

    async def test_a_joined_and_a_refused_put_are_recorded_with_the_run_that_stands_for_them(
        self, stage: Stage
    ) -> None:
        await stage.put(holder := new_run(key="k", unique="queued"))
        joined = await stage.store.put([new_run(key="k", unique="queued")])
        stage.wait(1)
        refused = await stage.store.put([new_run(key="k", unique="queued", join="refuse")])
        assert await decisions(stage) == [
            DecisionCount(GREET, "k", Reason.ALREADY_QUEUED, 1, refused.now, refused.now, holder.id),
            DecisionCount(GREET, "k", Reason.JOINED, 1, joined.now, joined.now, holder.id),
        ]

    async def test_there_is_one_row_per_task_key_and_reason(self, stage: Stage) -> None:
        await stage.declare(enabled=False)
        await stage.declare(enabled=False, task="other")
        places = [(GREET, "k"), (GREET, "l"), (GREET, None), ("other", "k")]
        times, batch = list[float](), list[NewRun]()
        for _ in range(3):
            batch = [new_run(task, key=key) for task, key in places for _ in range(2)]
            times.append((await stage.store.put(batch)).now)
            stage.wait(10)
        rows = await decisions(stage)
        assert sorted((row.task, row.key, row.count) for row in rows) == sorted(
            (task, key or "", 6) for task, key in places
        )
        assert {(row.reason, row.first_at, row.last_at) for row in rows} == {(Reason.DISABLED, times[0], times[-1])}
        assert {row.run for row in rows} == {batch[place].id for place in (1, 3, 5, 7)}

    async def test_rows_are_read_by_task_and_key_and_the_latest_first(self, stage: Stage) -> None:
        for task in ("a", "b"):
            await stage.declare(enabled=False, task=task)
        for task, key in [("a", "k"), ("b", "k"), ("a", "l"), ("b", None), ("a", "k")]:
            await stage.admit(new_run(task, key=key))
            stage.wait(1)
        named = [("a", "k"), ("b", ""), ("a", "l"), ("b", "k")]
        assert [(row.task, row.key) for row in await decisions(stage)] == named
        assert [row.key for row in await decisions(stage, "a")] == ["k", "l"]
        assert [row.task for row in await decisions(stage, key="k")] == ["a", "b"]
        assert [row.count for row in await decisions(stage, "a", "k")] == [2]
        assert await decisions(stage, "never") == []
        limited = (await stage.store.rows(DecisionCount, RowQuery(limit=2))).items
        assert [(row.task, row.key) for row in limited] == named[:2]

    async def test_an_expired_run_is_recorded_however_it_expired(self, stage: Stage) -> None:
        swept, claimed, met = (new_run(key="k", unique="queued", expires_after=60) for _ in range(3))
        await stage.put(swept)
        stage.wait(61)
        await stage.store.sweep(Retention())
        assert [(row.reason, row.count, row.run) for row in await decisions(stage)] == [(Reason.EXPIRED, 1, swept.id)]
        await stage.put(claimed)
        stage.wait(61)
        await stage.claim("eve", tasks=["elsewhere"])
        await stage.put(met)
        stage.wait(61)
        await stage.put(new_run(key="k", unique="queued"))
        (row,) = await decisions(stage, GREET, "k")
        assert (row.reason, row.count, row.run) == (Reason.EXPIRED, 3, met.id)

    async def test_a_superseded_run_is_recorded_with_its_heir(self, stage: Stage) -> None:
        run = await stage.running(new_run(key="k", unique="queued"))
        await stage.put(heir := new_run(key="k", unique="queued"))
        await stage.end(run, Released())
        await stage.end(run, Released())
        (row,) = await decisions(stage)
        assert (row.key, row.reason, row.count, row.run) == ("k", Reason.SUPERSEDED, 1, heir.id)

    async def test_a_command_is_recorded_with_who_and_why(self, stage: Stage) -> None:
        run, queued = await stage.running(new_run(key="k")), new_run(key="k")
        await stage.put(queued)
        store = stage.store
        await store.control(Command.PAUSE, [queued.id], "wait", "Ada")
        await store.control(Command.RESUME, [queued.id], "go", "Bob")
        cancel = await store.control(Command.CANCEL, [queued.id, run.id], "stop", "Cyd")
        rows = {row.reason: row for row in await decisions(stage, GREET, "k")}
        found = {reason: (row.count, row.run, row.note, row.by) for reason, row in rows.items()}
        assert found == {
            Reason.PAUSED: (1, queued.id, "wait", "Ada"),
            Reason.RESUMED: (1, queued.id, "go", "Bob"),
            Reason.CANCELLED: (2, run.id, "stop", "Cyd"),
        }
        stage.wait(5)
        await store.control(Command.CANCEL, [queued.id, "never-put"], "changes nothing", "Dan")
        await store.control(Command.PAUSE, [queued.id, run.id], "changes nothing", "Dan")
        assert {row.reason: row for row in await decisions(stage)} == rows
        assert rows[Reason.CANCELLED].last_at == cancel.now

    async def test_the_last_word_replaces_who_and_why(self, stage: Stage) -> None:
        for note, by in (("first", "Ada"), (None, None), ('odd "word" 🦉', "Bob")):
            await stage.put(new := new_run())
            await stage.store.control(Command.DROP, [new.id], note, by)
            (row,) = await decisions(stage)
            assert (row.reason, row.run, row.note, row.by) == (Reason.DROPPED, new.id, note, by)
        assert row.count == 3

    async def test_a_command_about_a_task_is_one_decision_about_all_its_keys(self, stage: Stage) -> None:
        await stage.put(*(new_run(key=key) for key in ("k", "l", None)))
        for command in (Command.PAUSE, Command.RESUME, Command.DROP, Command.DROP):
            await stage.store.control(command, [GREET, "never"], "tidy", "Ada", Scope.TASKS)
        rows = [row for row in await decisions(stage) if row.task == GREET]
        found = {row.reason: (row.key, row.count, row.run, row.note, row.by) for row in rows}
        assert found == {
            Reason.PAUSED: ("", 1, None, "tidy", "Ada"),
            Reason.RESUMED: ("", 1, None, "tidy", "Ada"),
            Reason.DROPPED: ("", 3, None, "tidy", "Ada"),
        }

    async def test_a_decision_is_kept_for_eight_days_after_it_was_last_made(self, stage: Stage) -> None:
        await stage.declare(enabled=False)
        await stage.admit(new_run(key="old"))
        await stage.admit(new_run(key="again"))
        stage.wait(7.9 * DAY)
        await stage.store.sweep(Retention())
        await stage.admit(new_run(key="again"))
        assert len(await decisions(stage)) == 2
        stage.wait(0.2 * DAY)
        await stage.store.sweep(Retention())
        (row,) = await decisions(stage)
        assert (row.key, row.count) == ("again", 2)

    async def test_of_one_batch_the_last_run_is_remembered_in_its_order(self, stage: Stage) -> None:
        first, last, *joining = (replace(new_run(unique="queued"), unique_key=name) for name in ("v", "u", "v", "u"))
        await stage.store.put([first, last])
        await stage.store.put(joining)
        assert [(row.count, row.run) for row in (await stage.store.rows(DecisionCount)).items] == [(2, last.id)]


class RowContract(Staged):
    async def test_marks_are_read_by_task_and_key(self, stage: Stage) -> None:
        cooldowns = (Cooldown(9, 1.0),)
        first = await stage.ended(new_run(key="k", cooldowns=cooldowns))
        await stage.ended(new_run(key="l", cooldowns=cooldowns), Succeeded())
        stage.wait(5)
        failed = await stage.ended(new_run(key="k", cooldowns=cooldowns, policy=Policy()), Failed(BOOM))
        rows = (await stage.store.rows(MarkRow)).items
        assert [(row.task, row.key) for row in rows] == [(GREET, "k"), (GREET, "l")]
        assert rows[0].mark == Mark(first.finished_at, failed.finished_at, 1)
        assert (await stage.store.rows(MarkRow, RowQuery(task=GREET, key="k"))).items == rows[:1]
        assert (await stage.store.rows(MarkRow, RowQuery(task="other"))).items == []
        assert (await stage.store.rows(MarkRow, RowQuery(limit=1))).items == rows[:1]

    async def test_a_task_that_reads_no_marks_leaves_none(self, stage: Stage) -> None:
        await stage.ended(new_run(key="k", unique="active"))
        assert (await stage.store.rows(MarkRow)).items == []

    async def test_schedules_are_read_page_by_page_in_the_order_of_their_ids(self, stage: Stage) -> None:
        timetable = Timetable(stage)
        names = [f"s{place:02}" for place in range(25)]
        tasks = ("even", "odd")
        await timetable.declare(
            *(new_schedule(name, task=tasks[place % 2]) for place, name in reversed([*enumerate(names)]))
        )
        found, after = list[str](), ""
        while page := (await stage.store.rows(Schedule, RowQuery(after=after, limit=10))).items:
            found += [schedule.id for schedule in page]
            after = found[-1]
        assert found == names
        assert [row.id for row in (await stage.store.rows(Schedule)).items] == names
        odd = (await stage.store.rows(Schedule, RowQuery(task="odd", after="s03", limit=3))).items
        assert [row.id for row in odd] == ["s05", "s07", "s09"]

    async def test_schedules_are_read_by_name(self, stage: Stage) -> None:
        timetable = Timetable(stage)
        await timetable.declare(*(new_schedule(id) for id in ("c", "a", "b", "A")))
        assert [row.id for row in await timetable.find("b", "never", "a", "b")] == ["a", "b"]
        assert await timetable.find() == []
        named = RowQuery(names=["a", "b", "c"], after="a", limit=1)
        assert [row.id for row in (await stage.store.rows(Schedule, named)).items] == ["b"]

    async def test_specs_are_read_page_by_page_and_by_name(self, stage: Stage) -> None:
        names = [f"t{place}" for place in range(7)]
        await stage.store.declare([TaskSpec(name) for name in reversed(names)])

        async def read(query: RowQuery) -> list[str]:
            return [spec.name for spec in (await stage.store.rows(TaskSpec, query)).items]

        assert await read(RowQuery(limit=3)) == names[:3]
        assert await read(RowQuery(after="t2", limit=3)) == names[3:6]
        assert await read(RowQuery(after="t6")) == []
        assert await read(RowQuery(names=["t5", "never", "t1"])) == ["t1", "t5"]


class ScheduleSweepContract(Staged):
    async def test_a_schedule_without_ticks_and_without_an_owner_is_kept_for_eight_days(self, stage: Stage) -> None:
        timetable = Timetable(stage)
        owners = {"over": "", "owned": "app"}
        for id, owner in owners.items():
            await timetable.add(id, owner=owner)
        await timetable.add("coming", 100 * DAY, owner="")
        await timetable.add("held", owner="")
        await timetable.control(Command.PAUSE, "held")
        stage.wait(61)
        await timetable.fire(*(new_tick(row, new_run(), last=True) for row in await timetable.find(*owners)))
        stage.wait(7.9 * DAY)
        await stage.store.sweep(Retention())
        assert len((await stage.store.rows(Schedule)).items) == 4
        stage.wait(0.2 * DAY)
        await stage.store.sweep(Retention())
        assert [row.id for row in (await stage.store.rows(Schedule)).items] == ["coming", "held", "owned"]
        stage.wait(80 * DAY)
        await stage.store.sweep(Retention())
        assert [row.id for row in (await stage.store.rows(Schedule)).items] == ["coming", "held", "owned"]

    async def test_one_that_never_had_a_tick_is_kept_for_eight_days_as_well(self, stage: Stage) -> None:
        timetable = Timetable(stage)
        await timetable.declare(new_schedule(owner=""))
        stage.wait(ID_MEMORY + 1)
        await stage.store.sweep(Retention())
        assert len(await timetable.find("report")) == 1
        stage.wait(8 * DAY)
        await stage.store.sweep(Retention())
        assert await timetable.find("report") == []

    async def test_a_swept_schedule_can_be_declared_anew(self, stage: Stage) -> None:
        timetable = Timetable(stage)
        await timetable.declare(new_schedule(owner=""))
        stage.wait(9 * DAY)
        await stage.store.sweep(Retention())
        at = await stage.now() + 60
        reply = await stage.store.declare([new_schedule(at=at)])
        assert await timetable.see() == replace(new_schedule(at=at), version=1, since=reply.now)
