"""events: what a store records for other processes, in which order, and what it forgets."""

import pytest
from msgspec.structs import replace

from rota.domain.edits import RunEdit
from rota.domain.ended import with_callbacks
from rota.domain.event import Event
from rota.domain.lifecycle import Failed, Lost, Released, Succeeded
from rota.domain.policy import Policy, Retry
from rota.domain.run import Callback, Member, Note, Progress, Run, State
from rota.domain.settlement import Verdict
from rota.domain.spec import TaskSpec
from rota.errors import InvalidOptions
from rota.store import EVENT_MEMORY, ID_MEMORY, SUBSCRIBED, Backend, Command, EventQuery, Retention, Scope
from storekit.contract.stage import BOOM, GREET, LEASE, Stage, Staged, new_run
from storekit.contract.timetable import Timetable, new_tick

Told = tuple[str, str | None]


class Reader:
    """Somebody who reads events from cursor to cursor."""

    def __init__(self, stage: Stage, cursor: str) -> None:
        self._stage = stage
        self.cursor = cursor

    async def read(self, limit: int = 500) -> list[Event]:
        page = await self._stage.store.events(EventQuery(after=self.cursor, limit=limit))
        self.cursor = page.cursor
        return page.events

    async def names(self) -> list[Told]:
        return [(event.name, event.id) for event in await self.read()]


async def reader(stage: Stage) -> Reader:
    page = await stage.store.events(EventQuery())
    assert page.events == []
    return Reader(stage, page.cursor)


class EventContract(Staged):
    async def test_the_way_of_a_run_is_read_in_its_order(self, stage: Stage) -> None:
        events = await reader(stage)
        run = await stage.running(new_run(key="ada"))
        await stage.end(run, Succeeded())
        queued, started, succeeded = await events.read()
        assert [event.name for event in (queued, started, succeeded)] == ["queued", "started", "succeeded"]
        assert {(event.of, event.id, event.task, event.key) for event in (queued, started, succeeded)} == {
            ("runs", run.id, GREET, "ada")
        }
        assert [event.state for event in (queued, started, succeeded)] == ["queued", "running", "succeeded"]
        assert [event.fence for event in (queued, started, succeeded)] == [0, 1, 1]
        assert [event.worker for event in (queued, started, succeeded)] == [None, "ada", "ada"]
        assert queued.reason == "accepted"
        assert succeeded.at == (await stage.see(run)).finished_at
        assert await events.read() == []

    async def test_a_callback_is_recorded_where_the_end_puts_it(self, stage: Stage) -> None:
        events = await reader(stage)
        ends = tuple(Callback(state, "called") for state in (State.SUCCEEDED, State.CANCELLED))
        done, gone = with_callbacks(new_run(), ends), with_callbacks(new_run(), ends)
        await stage.end(await stage.running(done), Succeeded())
        await stage.put(gone)
        await stage.cancel(gone)
        queued = [(event.id, event.reason) for event in await events.read() if event.task == "called"]
        assert queued == [(done.callbacks[0].id, "accepted"), (gone.callbacks[1].id, "accepted")]

    async def test_progress_is_an_event_and_a_renewal_is_none(self, stage: Stage) -> None:
        run = await stage.running()
        events = await reader(stage)
        await stage.store.renew([run.lease], LEASE)
        assert await events.read() == []
        await stage.store.renew([run.lease], LEASE, {run.id: Note(Progress(0.5, "half"))})
        (event,) = await events.read()
        assert (event.name, event.of, event.id, event.task) == ("progress", "runs", run.id, GREET)
        assert (event.state, event.fence, event.worker) == ("running", 1, "ada")
        await stage.store.renew([replace(run.lease, fence=7)], LEASE, {run.id: Note(Progress(0.6))})
        assert await events.read() == [], "somebody else has the run"

    async def test_a_note_that_changes_nothing_is_no_event(self, stage: Stage) -> None:
        run = await stage.running()
        events = await reader(stage)
        half, other = Note(Progress(0.5, "half")), Note(Progress(0.5))
        notes = [half, half, Note(half.progress, b"3"), Note(saved=b"3"), other, other, Note()]
        recorded: list[int] = []
        for note in notes:
            await stage.store.renew([run.lease], LEASE, {run.id: note})
            recorded.append(len(await events.read()))
        assert recorded == [1, 0, 1, 0, 1, 0, 0]
        seen = await stage.see(run)
        assert (seen.progress, seen.saved) == (Progress(0.5), b"3")

    async def test_a_freeze_and_its_end_are_events(self, stage: Stage) -> None:
        events = await reader(stage)
        await stage.store.freeze(True, None, "upgrade", "eve")
        await stage.store.freeze(True, None, "upgrade", "eve")
        await stage.store.freeze(False)
        await stage.store.freeze(False)
        assert [(event.of, event.name, event.id) for event in await events.read()] == [
            ("tasks", "frozen", ""),
            ("tasks", "thawed", ""),
        ]

    async def test_a_reader_without_a_cursor_begins_now(self, stage: Stage) -> None:
        first = await reader(stage)
        await stage.put(new_run())
        assert len(await first.read()) == 1
        second = await reader(stage)
        assert await second.read() == []
        await stage.put(new_run())
        assert len(await second.read()) == len(await first.read()) == 1

    async def test_every_event_says_where_to_go_on(self, stage: Stage) -> None:
        events = await reader(stage)
        runs = [new_run() for _ in range(5)]
        await stage.put(*runs)
        everything = await events.read()
        assert [event.id for event in everything] == [run.id for run in runs]
        for place, event in enumerate(everything):
            assert await Reader(stage, event.cursor).read() == everything[place + 1 :]

    async def test_a_page_has_as_many_events_as_asked_for(self, stage: Stage) -> None:
        events = await reader(stage)
        runs = [new_run() for _ in range(5)]
        await stage.put(*runs)
        pages = [[event.id for event in await events.read(limit=2)] for _ in range(4)]
        names = [run.id for run in runs]
        assert pages == [names[:2], names[2:4], names[4:], []]

    async def test_a_put_that_is_sent_again_is_one_event(self, stage: Stage) -> None:
        events = await reader(stage)
        for run in (new_run(), new_run(key="one", unique="queued")):
            for _ in range(2):
                await stage.put(run)
            assert await events.names() == [("queued", run.id)]

    async def test_a_claim_that_is_sent_again_is_one_event(self, stage: Stage) -> None:
        events = await reader(stage)
        run = await stage.running()
        await stage.claim(again=True)
        assert await events.names() == [("queued", run.id), ("started", run.id)]

    async def test_a_settle_that_is_sent_again_is_one_event(self, stage: Stage) -> None:
        run = await stage.running()
        events = await reader(stage)
        assert [await stage.end(run, Succeeded()) for _ in range(2)] == [Verdict.APPLIED, Verdict.ALREADY]
        assert await events.names() == [("succeeded", run.id)]

    async def test_a_stale_settle_is_no_event(self, stage: Stage) -> None:
        run = await stage.lapsed()
        assert await stage.end(run, Lost()) is Verdict.APPLIED
        events = await reader(stage)
        assert await stage.end(run, Succeeded()) is Verdict.STALE
        assert await events.read() == []

    async def test_a_join_and_a_refusal_name_the_run_in_the_way(self, stage: Stage) -> None:
        holder = new_run(key="a", unique="queued")
        await stage.put(holder)
        events = await reader(stage)
        await stage.admit(new_run(key="a", unique="queued"))
        await stage.admit(new_run(key="a", unique="queued", join="refuse"))
        joined, refused = await events.read()
        assert (joined.name, joined.id, joined.state, joined.reason) == ("joined", holder.id, "queued", "joined")
        assert (refused.name, refused.id, refused.task, refused.key) == ("refused", holder.id, GREET, "a")
        assert (refused.reason, refused.state) == ("already_queued", "")

    async def test_the_ends_of_calls_have_names(self, stage: Stage) -> None:
        retried, released = await stage.running(), await stage.running()
        failed = await stage.running(new_run(policy=Policy(retry=Retry(0))))
        events = await reader(stage)
        await stage.end(retried, Failed(BOOM))
        await stage.end(released, Released())
        await stage.end(failed, Failed(BOOM))
        found = await events.read()
        assert [(event.name, event.id) for event in found] == [
            ("retried", retried.id),
            ("queued", released.id),
            ("failed", failed.id),
        ]
        assert [event.state for event in found] == ["queued", "queued", "failed"]
        assert [event.worker for event in found] == ["ada"] * 3
        assert [event.reason for event in found][:2] == ["failed", "released"]

    async def test_a_loss_is_an_event(self, stage: Stage) -> None:
        run = await stage.lapsed()
        events = await reader(stage)
        await stage.end(run, Lost())
        (lost,) = await events.read()
        assert (lost.name, lost.id, lost.state, lost.reason) == ("lost", run.id, "queued", "lost")

    async def test_commands_about_runs_are_events(self, stage: Stage) -> None:
        waiting, running, stopping = new_run(delay=600), await stage.running(), await stage.running()
        await stage.put(waiting)
        events = await reader(stage)
        await stage.pause(waiting)
        await stage.resume(waiting)
        await stage.cancel(waiting)
        await stage.cancel(running)
        await stage.pause(stopping)
        found = await events.read()
        assert [(event.name, event.id, event.state) for event in found] == [
            ("paused", waiting.id, "paused"),
            ("resumed", waiting.id, "queued"),
            ("cancelled", waiting.id, "cancelled"),
            ("cancel_requested", running.id, "running"),
            ("pause_requested", stopping.id, "running"),
        ]
        await stage.end(stopping, Released())
        await stage.end(running, Released())
        assert [(event.name, event.state) for event in await events.read()] == [
            ("paused", "paused"),
            ("cancelled", "cancelled"),
        ]

    async def test_an_edit_and_a_deletion_are_events(self, stage: Stage) -> None:
        run, ended = new_run(delay=600), await stage.ended(new_run(key="ada"))
        await stage.put(run)
        stage.wait(ID_MEMORY + 1)
        events = await reader(stage)
        for _ in range(2):
            await stage.store.edit([RunEdit(run=run.id, priority=5)])
            await stage.store.control(Command.DELETE, [ended.id])
        edited, deleted = await events.read()
        assert (edited.name, edited.id, edited.state) == ("edited", run.id, "queued")
        assert (deleted.name, deleted.id, deleted.task, deleted.key) == ("deleted", ended.id, GREET, "ada")

    async def test_commands_and_declarations_of_tasks_are_events(self, stage: Stage) -> None:
        events = await reader(stage)
        await stage.declare()
        await stage.declare()
        for command in (Command.PAUSE, Command.PAUSE, Command.RESUME):
            await stage.store.control(command, [GREET], of=Scope.TASKS)
        await stage.store.declare([TaskSpec(GREET, enabled=False)])
        found = await events.read()
        assert [(event.name, event.reason) for event in found] == [
            ("declared", "added"),
            ("paused", ""),
            ("resumed", ""),
            ("declared", "changed"),
        ]
        assert {(event.of, event.id, event.task) for event in found} == {("tasks", GREET, GREET)}

    async def test_the_runs_of_a_cleared_task_are_cancelled_one_by_one(self, stage: Stage) -> None:
        runs = [new_run() for _ in range(3)]
        await stage.put(*runs)
        events = await reader(stage)
        await stage.store.control(Command.DROP, [GREET], of=Scope.TASKS)
        found = await events.read()
        assert {(event.name, event.id, event.reason) for event in found} == {
            ("cancelled", run.id, "dropped") for run in runs
        }

    async def test_what_happens_to_a_schedule_is_an_event(self, stage: Stage) -> None:
        events = await reader(stage)
        schedule, run = await Timetable(stage).due(), new_run()
        tick = new_tick(schedule, run)
        assert (await stage.store.fire([tick])).items[0].applied
        assert not (await stage.store.fire([tick])).items[0].applied
        for command in (Command.PAUSE, Command.RESUME, Command.DROP):
            await stage.store.control(command, [schedule.id], of=Scope.SCHEDULES)
        found = await events.read()
        about = [event for event in found if event.of == "schedules"]
        assert [event.name for event in about] == ["declared", "fired", "paused", "resumed", "removed"]
        assert {(event.id, event.task, event.key) for event in about} == {(schedule.id, schedule.task, schedule.key)}
        assert about[1].reason == "accepted"
        assert [(event.name, event.id) for event in found if event.of == "runs"] == [("queued", run.id)]

    async def test_an_expiry_is_an_event_wherever_it_is_found(self, stage: Stage) -> None:
        swept, claimed = new_run(expires_after=60), new_run(expires_after=120)
        met = new_run(expires_after=180, key="a", unique="queued", delay=60)
        await stage.put(swept, claimed, met)
        events = await reader(stage)
        stage.wait(61)
        await stage.store.sweep(Retention())
        assert [(event.name, event.id, event.reason) for event in await events.read()] == [
            ("cancelled", swept.id, "expired")
        ]
        stage.wait(60)
        await stage.claim(tasks=["other"])
        assert await events.names() == [("cancelled", claimed.id)]
        stage.wait(300)
        fresh = new_run(key="a", unique="queued")
        await stage.put(fresh)
        assert set(await events.names()) == {("cancelled", met.id), ("queued", fresh.id)}

    async def test_a_group_comes_with_the_events_of_its_runs(self, stage: Stage) -> None:
        events = await reader(stage)
        run = await stage.running(new_run(member=Member("race@today", "first")))
        await stage.end(run, Succeeded())
        assert [event.group for event in await events.read()] == ["race@today"] * 3

    async def test_a_stopped_group_is_an_event_for_each_run(self, stage: Stage) -> None:
        first = new_run(member=Member("race@today", "first", stops=True), policy=Policy(max_losses=1))
        behind = new_run(member=Member("race@today", "second"), delay=600)
        run = await stage.running(first)
        await stage.put(behind)
        events = await reader(stage)
        await stage.end(run, Failed(BOOM))
        found = await events.read()
        assert {(event.name, event.id, event.reason) for event in found} >= {("cancelled", behind.id, "stopped")}
        assert ("failed", first.id) in {(event.name, event.id) for event in found}

    async def test_a_run_that_is_replaced_is_asked_to_stop(self, stage: Stage) -> None:
        first, second = [new_run(key="k", unique="queued", join="replace", behind=True) for _ in range(2)]
        await stage.running(first)
        events = await reader(stage)
        for _ in range(2):
            await stage.put(second)
        assert sorted(await events.names()) == [("cancel_requested", first.id), ("queued", second.id)]

    async def test_a_superseded_run_is_cancelled(self, stage: Stage) -> None:
        tried = await stage.running(new_run(key="a", unique="queued"))
        await stage.put(new_run(key="a", unique="queued", delay=600))
        events = await reader(stage)
        await stage.end(tried, Failed(BOOM))
        assert [(event.name, event.id, event.reason) for event in await events.read()] == [
            ("cancelled", tried.id, "superseded")
        ]


class EventMemoryContract(Staged):
    async def test_without_a_reader_nothing_is_recorded(self, stage: Stage) -> None:
        await stage.put(new_run())
        events = await reader(stage)
        assert await events.read() == []
        stage.wait(SUBSCRIBED + 1)
        await stage.put(new_run())
        assert [name for name, _ in await events.names()] == ["gap"]
        assert await events.read() == []

    async def test_a_read_keeps_the_store_recording(self, stage: Stage) -> None:
        events = await reader(stage)
        for _ in range(3):
            stage.wait(SUBSCRIBED * 0.4)
            assert await events.read() == []
            stage.wait(SUBSCRIBED * 0.4)
            run = new_run(delay=1e6)
            await stage.put(run)
            assert await events.names() == [("queued", run.id)]

    async def test_after_a_lapse_there_is_one_gap_and_then_all_goes_on(self, stage: Stage) -> None:
        events = await reader(stage)
        await stage.put(new_run())
        stage.wait(SUBSCRIBED + 1)
        (gap,) = await events.read()
        assert (gap.name, gap.of, gap.id) == ("gap", "", None)
        run = new_run()
        await stage.put(run)
        assert await events.names() == [("queued", run.id)]
        assert [event.id for event in await Reader(stage, gap.cursor).read()] == [run.id]

    async def test_old_events_are_forgotten_and_leave_a_gap(self, stage: Stage) -> None:
        events, early = await reader(stage), await reader(stage)
        old, new = new_run(delay=1e6), new_run(delay=1e6)
        await stage.put(old)
        stage.wait(EVENT_MEMORY * 0.6)
        await stage.put(new)
        assert await events.names() == [("queued", old.id), ("queued", new.id)]
        stage.wait(EVENT_MEMORY * 0.6)
        await stage.store.sweep(Retention())
        assert await early.names() == [("gap", None), ("queued", new.id)]
        assert await early.read() == await events.read() == []

    async def test_a_reader_of_everything_gets_no_gap_when_it_is_forgotten(self, stage: Stage) -> None:
        events = await reader(stage)
        await stage.put(new_run(delay=1e6))
        assert len(await events.read()) == 1
        for _ in range(3):
            stage.wait(EVENT_MEMORY * 0.45)
            assert await events.read() == []
        await stage.store.sweep(Retention())
        assert await events.read() == []

    async def test_a_cursor_of_a_store_that_lost_its_data_gets_a_gap(self, stage: Stage) -> None:
        events = await reader(stage)
        await stage.put(new_run())
        (event,) = await events.read()
        for number in (1, int(event.cursor.partition("-")[0]) + 1_000_000):
            lost = Reader(stage, str(number))
            assert (await lost.names())[0] == ("gap", None)
            assert await lost.read() == []

    @pytest.mark.parametrize("cursor", ["", "x", "-1", "1-x", "\u0661", "9" * 50, "1 OR 1"])
    async def test_a_cursor_that_is_none_is_refused(self, stage: Stage, cursor: str) -> None:
        with pytest.raises(InvalidOptions, match="events"):
            await stage.store.events(EventQuery(after=cursor))

    async def test_events_are_hinted(self, stage: Stage, backend: Backend) -> None:
        await reader(stage)
        async with backend.open() as other, stage.store.changes() as near, other.changes() as far:
            await stage.put(new_run())
            for hints in (near, far):
                async for hint in hints:
                    if hint.events or hint.any_run:
                        break

    async def test_lapsed_leases_do_not_stop_the_events(self, stage: Stage) -> None:
        events = await reader(stage)
        run: Run = await stage.running()
        stage.wait(LEASE + 1)
        assert [offered.id for offered in (await stage.claim("bob")).lapsed] == [run.id]
        assert await events.names() == [("queued", run.id), ("started", run.id)]
