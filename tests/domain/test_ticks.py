"""Planning: what a due schedule makes of now, however long nobody was there."""

from collections.abc import Callable, Sequence
from datetime import datetime

import pytest
from msgspec.structs import replace

from rota.domain import codec
from rota.domain.guards import Cooldown, Guards
from rota.domain.run import NewRun, Origin
from rota.domain.schedule import CATCH_UP_CAP, CatchUp, Missed, Schedule, declared, paused, resumed
from rota.domain.ticks import (
    BACKFILL_CAP,
    ON_TIME,
    backfill,
    due_tick,
    moved_tick,
    passed_tick,
    run_now,
    tick_id,
    ticks_between,
    with_first_tick,
)
from rota.domain.timing import COUNTED
from rota.domain.triggers import Cron, Every, Trigger
from tests.domain.timetables import DAY, NOON, fired, instant, known, new

MONTH = 30 * DAY
SECONDLY = ("every 1s", "cron * * * * * *")
DAILY = "daily 09:00"
NINE = instant(2026, 11, 16, 9)


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every question to a trigger, as it is asked."""
    asked: list[str] = []

    def count(kind: type[Trigger], name: str) -> None:
        real: Callable[[Trigger, datetime], datetime | None] = getattr(kind, name)

        def call(self: Trigger, at: datetime) -> datetime | None:
            asked.append(name)
            return real(self, at)

        monkeypatch.setattr(kind, name, call)

    for kind in (Every, Cron):
        for name in ("next_after", "previous_before"):
            count(kind, name)
    return asked


class TestFirstTick:
    def test_it_never_lies_in_the_past(self) -> None:
        for trigger in (*SECONDLY, DAILY, "every 7h jitter 1h", "cron */5 * * * *"):
            schedule = with_first_tick(new(trigger), NOON)
            assert schedule.next_at is not None
            assert schedule.fires_at is not None
            assert NOON < schedule.next_at <= schedule.fires_at

    def test_an_every_counts_from_the_whole_second_of_its_declaration(self) -> None:
        schedule = with_first_tick(new("every 90s"), NOON + 0.75)
        assert (schedule.anchor, schedule.next_at) == (NOON, NOON + 90)

    def test_one_that_starts_later_has_its_first_tick_then(self) -> None:
        assert with_first_tick(new("cron 0 * * * *", start=NOON + 5400), NOON).next_at == NOON + 7200
        assert with_first_tick(new("cron 0 * * * *", start=NOON + 3600), NOON).next_at == NOON + 3600

    def test_one_that_is_over_has_none(self) -> None:
        for schedule in (new("at 2026-11-15T11:59:59Z"), new(DAILY, end=NINE - 1)):
            first = with_first_tick(schedule, NOON)
            assert (first.next_at, first.fires_at) == (None, None)

    def test_it_stands_at_its_end_as_well(self) -> None:
        assert with_first_tick(new(DAILY, end=NINE), NOON).next_at == NINE


class TestOnTime:
    @pytest.mark.parametrize("catch_up", ["latest", "all", "skip"])
    @pytest.mark.parametrize("grace", [None, 600.0])
    def test_a_tick_makes_one_run_and_moves_on(self, catch_up: CatchUp, grace: float | None) -> None:
        guards = Guards("active", cooldowns=(Cooldown(3, 60.0),))
        schedule = known(DAILY, catch_up=catch_up, grace=grace, guards=guards, priority=7)
        tick = due_tick(schedule, NINE + 0.02)
        assert (tick.schedule, tick.version, tick.next_at) == ("report", 1, NINE)
        assert (tick.then, tick.fires_at, tick.missed) == (NINE + DAY, NINE + DAY, None)
        assert tick.nominals == (NINE,)
        (run,) = tick.runs
        assert (run.id, run.task, run.key, run.unique_key) == (
            tick_id("report", NINE),
            "greet",
            *["schedule:report"] * 2,
        )
        assert (run.guards, run.priority, run.needs) == (guards, 7, ())
        assert (run.at, run.expires_at) == (NINE, None if grace is None else NINE + grace)
        body = codec.decode(run.body)
        assert (bytes(body.args), body.origin) == (b'{"name":"Ada"}', Origin("schedule", "report", NINE))

    def test_a_run_without_a_unique_guard_stands_beside_any(self) -> None:
        (run,) = due_tick(known(DAILY), NINE).runs
        assert (run.unique_key, run.key) == (None, "schedule:report")

    def test_the_id_of_a_tick_is_the_same_for_everyone_and_no_other_has_it(self) -> None:
        tick, later = fired(known("every 1s"), NOON + 1)
        assert tick.runs[0].id == tick_id("report", NOON + 1) == due_tick(known("every 1s"), NOON + 1.9).runs[0].id
        ids = {tick.runs[0].id, due_tick(later, NOON + 2).runs[0].id, tick_id("other", NOON + 1)}
        assert len(ids) == 3
        assert tick_id("report", NOON + 1) == "bc5d5caa-d0fb-58e6-bb08-7d79dfde3b53"  # it is stored: never to change

    def test_one_that_is_looked_at_too_early_stays_where_it_stands(self) -> None:
        tick = due_tick(known(DAILY), NINE - 1)
        assert (tick.then, tick.runs, tick.missed) == (NINE, (), None)

    def test_an_instant_fires_once(self) -> None:
        tick, over = fired(known("at 2026-11-16T09:00:00Z"), NINE + 300)
        assert (tick.nominals, tick.then, tick.fires_at) == ((NINE,), None, None)
        assert due_tick(over, NINE + 600).runs == ()

    def test_what_is_excluded_makes_no_run_and_is_not_missed(self) -> None:
        schedule = known("cron 0 * * * * excluding cron 0 9-17 * * *", NOON)
        assert schedule.next_at == NOON + 6 * 3600
        tick = due_tick(schedule, NOON + DAY)
        assert tick.nominals == (NOON + 20 * 3600,)  # 8:00
        assert tick.missed == Missed(NOON + 6 * 3600, NOON + 19 * 3600, 14)
        assert tick.then == NOON + 30 * 3600


class TestAMonthLater:
    """Nobody was there for thirty days."""

    @pytest.mark.parametrize("catch_up", ["latest", "skip"])
    @pytest.mark.parametrize("trigger", SECONDLY)
    def test_of_many_seconds_the_last_is_on_time(self, trigger: str, catch_up: CatchUp, calls: list[str]) -> None:
        schedule = known(trigger, catch_up=catch_up)
        calls.clear()
        tick = due_tick(schedule, NOON + MONTH + 0.5)
        assert (tick.nominals, tick.then) == ((NOON + MONTH,), NOON + MONTH + 1)
        assert tick.missed == self.seconds(trigger, MONTH - 1)
        assert len(calls) <= COUNTED + 20

    @pytest.mark.parametrize("trigger", SECONDLY)
    def test_all_means_the_last_hundred_one_after_the_other(self, trigger: str, calls: list[str]) -> None:
        schedule = known(trigger, catch_up="all")
        calls.clear()
        tick = due_tick(schedule, NOON + MONTH + 0.5)
        assert len(calls) <= CATCH_UP_CAP + COUNTED + 20
        last = NOON + MONTH
        assert list(tick.nominals) == [last - back for back in reversed(range(CATCH_UP_CAP))]
        assert tick.missed == self.seconds(trigger, MONTH - CATCH_UP_CAP)

    def seconds(self, trigger: str, last: float) -> Missed:
        """Those of an interval are counted by dividing, others one by one as far as is cheap."""
        exact = trigger.startswith("every")
        return Missed(NOON + 1, NOON + last, round(last) if exact else COUNTED, not exact)

    @pytest.mark.parametrize(
        ("catch_up", "grace", "runs"),
        [
            ("latest", None, 1),
            ("latest", 4 * 3600.0, 1),
            ("latest", 3 * 3600.0, 0),
            ("all", None, 30),
            ("all", 4 * 3600.0, 1),
            ("all", 3 * 3600.0, 0),
            ("all", 2 * DAY, 2),
            ("skip", None, 0),
            ("skip", 4 * 3600.0, 1),
            ("skip", 3 * 3600.0, 0),
        ],
    )
    def test_a_daily_one(self, catch_up: CatchUp, grace: float | None, runs: int, calls: list[str]) -> None:
        """It is noon: the last tick was three hours ago."""
        schedule = known(DAILY, catch_up=catch_up, grace=grace)
        calls.clear()
        tick = due_tick(schedule, NOON + MONTH)
        assert len(calls) <= 30 + 30 + 20
        nominals = [NINE + day * DAY for day in range(30)]
        assert list(tick.nominals) == nominals[30 - runs :]
        left = nominals[: 30 - runs]
        assert tick.missed == (Missed(left[0], left[-1], len(left)) if left else None)
        assert tick.then == NINE + MONTH

    def test_a_skipping_one_makes_a_run_only_as_long_as_it_is_on_time(self) -> None:
        schedule = known(DAILY, catch_up="skip")
        assert due_tick(schedule, NINE + ON_TIME).nominals == (NINE,)
        late = due_tick(schedule, NINE + ON_TIME + 0.01)
        assert (late.nominals, late.missed) == ((), Missed(NINE, NINE, 1))

    def test_grace_ends_when_the_run_would_expire(self) -> None:
        for catch_up in ("latest", "all", "skip"):
            schedule = known("every 10s", catch_up=catch_up, grace=25.0)
            for now in (NOON + 100, NOON + 104.99, NOON + 105):
                tick = due_tick(schedule, now)
                assert all(run.expires_at is not None and run.expires_at > now for run in tick.runs)
                wanted = {at for at in (80, 90, 100) if at + 25 > now - NOON} if catch_up == "all" else {100}
                assert {nominal - NOON for nominal in tick.nominals} == wanted

    def test_a_chain_waits_and_none_of_it_is_refused_for_the_next(self) -> None:
        guards = Guards("active", cooldowns=(Cooldown(0, 3600.0),), max_pending=1)
        tick = due_tick(known(DAILY, catch_up="all", guards=guards, grace=MONTH, priority=3), NOON + 3 * DAY)
        first, second, third = tick.runs
        assert [run.needs for run in tick.runs] == [(), (first.id,), (second.id,)]
        assert {(run.unique_key, run.guards, run.key, run.priority) for run in tick.runs} == {
            (None, Guards(marks=True), "schedule:report", 3)
        }
        assert [run.at for run in tick.runs] == list(tick.nominals)
        assert [run.expires_at for run in tick.runs] == [nominal + MONTH for nominal in tick.nominals]
        assert third.id == tick_id("report", tick.nominals[-1])


class TestWhatIsOwed:
    def test_what_fell_before_a_declaration_is_told_as_missed(self) -> None:
        """The declarer's clock was an hour behind: its first tick lies before the store's word."""
        schedule = declared(with_first_tick(new("cron */10 * * * *", catch_up="all"), NOON - 3600), None, NOON + 60)
        assert schedule.next_at == NOON - 3000
        tick, after = fired(schedule, NOON + 61)
        assert (tick.runs, tick.missed, tick.then) == ((), Missed(NOON - 3000, NOON, 6), NOON + 600)
        assert due_tick(after, NOON + 600).nominals == (NOON + 600,)

    @pytest.mark.parametrize("catch_up", ["latest", "all", "skip"])
    def test_what_fell_into_a_pause_is_told_as_missed(self, catch_up: CatchUp) -> None:
        held = paused(known("every 1m", catch_up=catch_up), None)
        schedule = resumed(held, None, NOON + 605)
        tick, after = fired(schedule, NOON + 606)
        assert (tick.runs, tick.missed, tick.then) == ((), Missed(NOON + 60, NOON + 600, 10), NOON + 660)
        assert due_tick(after, NOON + 661).nominals == (NOON + 660,)

    def test_what_falls_behind_a_resume_is_even_if_nobody_was_there_at_once(self) -> None:
        schedule = resumed(paused(known("every 1m", catch_up="all"), None), None, NOON + 605)
        tick = due_tick(schedule, NOON + 725)
        assert (tick.nominals, tick.missed) == ((NOON + 660, NOON + 720), Missed(NOON + 60, NOON + 600, 10))

    def test_a_tick_of_the_very_instant_of_the_resume_is(self) -> None:
        schedule = resumed(paused(known("every 1m"), None), None, NOON + 600)
        assert due_tick(schedule, NOON + 600).nominals == (NOON + 600,)

    def test_nothing_behind_the_end_is(self) -> None:
        schedule = known("every 1m", catch_up="all", end=NOON + 150)
        tick, over = fired(schedule, NOON + DAY)
        assert (tick.nominals, tick.then, over.fires_at) == ((NOON + 60, NOON + 120), None, None)

    def test_nothing_before_the_start_is(self) -> None:
        schedule = known("every 1m", catch_up="all", start=NOON + 150)
        assert due_tick(schedule, NOON + 250).nominals == (NOON + 180, NOON + 240)

    def test_a_tick_that_still_jitters_is_not_yet(self) -> None:
        schedule = known("every 1h jitter 59m")
        fires_at = schedule.fires_at or 0.0
        assert fires_at > NOON + 3601
        assert due_tick(schedule, fires_at - 0.001).runs == ()
        (run,) = due_tick(schedule, fires_at).runs
        assert (run.at, run.id) == (fires_at, tick_id("report", NOON + 3600))


class TestZonesThatChange:
    """The database says tomorrow's nine o'clock is at 8:00 UTC; whoever computed `next_at` believed otherwise."""

    TRIGGER = "daily 09:00 Europe/Paris"
    REAL = instant(2026, 11, 16, 8)

    def believed(self, at: float, catch_up: CatchUp = "latest") -> Schedule:
        schedule = known(self.TRIGGER, catch_up=catch_up)
        assert schedule.next_at == self.REAL
        return replace(schedule, next_at=at, fires_at=at)

    def test_a_tick_that_stands_is_not_moved(self) -> None:
        for trigger in (self.TRIGGER, "every 7s jitter 3s", "at 2026-11-16T09:00:00Z", "every 0.1s"):
            assert moved_tick(known(trigger)) is None
        assert moved_tick(known("at 2020-01-01T00:00:00Z")) is None

    @pytest.mark.parametrize("off", [-3600.0, 3600.0, -1800.0, 7200.0])
    def test_a_coming_tick_is_followed_to_where_it_moved(self, off: float) -> None:
        move = moved_tick(self.believed(self.REAL + off))
        assert move is not None
        assert (move.next_at, move.then, move.fires_at) == (self.REAL + off, self.REAL, self.REAL)
        assert (move.runs, move.missed) == ((), None)

    @pytest.mark.parametrize("catch_up", ["latest", "all", "skip"])
    def test_one_that_moved_later_does_not_run_now_but_then(self, catch_up: CatchUp) -> None:
        tick, after = fired(self.believed(self.REAL - 3600, catch_up=catch_up), self.REAL - 3600)
        assert (tick.runs, tick.missed, tick.then) == ((), None, self.REAL)
        again = due_tick(after, self.REAL)
        assert (again.nominals, again.then) == ((self.REAL,), self.REAL + DAY)

    @pytest.mark.parametrize("catch_up", ["latest", "all"])
    def test_one_that_moved_earlier_runs_once_and_late(self, catch_up: CatchUp) -> None:
        tick, after = fired(self.believed(self.REAL + 3600, catch_up=catch_up), self.REAL + 3600)
        assert (tick.nominals, tick.missed, tick.then) == ((self.REAL,), None, self.REAL + DAY)
        assert due_tick(after, self.REAL + 3601).runs == ()

    def test_one_that_moved_earlier_and_is_not_made_up_is_missed(self) -> None:
        tick = due_tick(self.believed(self.REAL + 3600, catch_up="skip"), self.REAL + 3600)
        assert (tick.runs, tick.missed) == ((), Missed(self.REAL, self.REAL, 1))

    @pytest.mark.parametrize("off", [-3600.0, 3600.0])
    def test_a_change_of_the_past_replays_nothing(self, off: float) -> None:
        """Yesterday ran by the old rule; by the new one its tick was at another instant, which nobody owes."""
        schedule = self.believed(self.REAL + off, catch_up="all")
        schedule = replace(schedule, since=self.REAL - 100 * DAY)
        tick = due_tick(schedule, self.REAL + max(0.0, off))
        assert (tick.nominals, tick.missed) == ((self.REAL,), None)

    def test_two_who_disagree_make_one_run(self) -> None:
        """One knows the new rule and fires; the other, with the old one, moves the next tick to where it believes."""
        tick, after = fired(self.believed(self.REAL + 3600), self.REAL + 3600)
        assert len(tick.runs) == 1
        elsewhere = replace(after, trigger="daily 09:00 Europe/London")
        moved, later = fired(elsewhere, after.next_at or 0.0)
        assert (moved.runs, later.next_at) == ((), self.REAL + DAY + 3600)
        assert due_tick(later, self.REAL + DAY + 3600).nominals == (self.REAL + DAY + 3600,)


def filled(schedule: Schedule, first: float, last: float, behind: Sequence[str] = ()) -> list[NewRun]:
    return backfill(schedule, {at: tick_id(schedule.id, at) for at in ticks_between(schedule, first, last)}, behind)


class TestPassing:
    """What a change passes over is told, and made up by nobody."""

    def test_overdue_ticks_are_one_range_that_is_missed(self) -> None:
        tick = passed_tick(known("every 1m", catch_up="all"), NOON + 605)
        assert tick is not None
        assert (tick.runs, tick.missed, tick.then) == ((), Missed(NOON + 60, NOON + 600, 10), NOON + 660)

    def test_one_that_is_not_due_has_nothing_to_tell(self) -> None:
        assert passed_tick(known("every 1m"), NOON + 59) is None


class TestAnchors:
    def test_an_anchor_stays_as_long_as_the_interval_does(self) -> None:
        before = known("every 1h")
        for text in ("every 1h", "every 1h jitter 1m", "every 1h excluding daily 09:00 UTC"):
            assert with_first_tick(new(text, end=NOON + DAY), NOON + 1800, before).next_at == NOON + 3600
        assert with_first_tick(new("every 2h"), NOON + 1800, before).next_at == NOON + 1800 + 7200


class TestBackfill:
    def test_every_tick_of_a_time_comes_in_a_chain(self) -> None:
        schedule = known(DAILY, grace=60.0, guards=Guards("active"))
        first = NINE - 10 * DAY
        runs = filled(schedule, first, NINE - 8 * DAY)
        assert [run.id for run in runs] == [tick_id("report", first + day * DAY) for day in range(3)]
        assert [run.needs for run in runs] == [(), (runs[0].id,), (runs[1].id,)]
        assert {(run.at, run.expires_at, run.unique_key, run.guards) for run in runs} == {(None, None, None, Guards())}
        origins = [codec.decode(run.body).origin for run in runs]
        assert origins == [Origin("schedule", "report", first + day * DAY) for day in range(3)]

    def test_the_first_waits_for_what_is_unfinished(self) -> None:
        schedule = known(DAILY, guards=Guards("active"))
        one, two = filled(schedule, NINE - 2 * DAY, NINE - DAY, behind=["running"])
        assert (one.guards, one.unique_key, one.needs, two.needs) == (Guards(), None, ("running",), (one.id,))

    def test_a_time_without_ticks_has_none(self) -> None:
        schedule = known("every 1m", start=NOON, end=NOON + 600)
        assert filled(schedule, NOON - 600, NOON - 1) == []
        assert filled(schedule, NOON + 61, NOON + 119) == []
        assert len(filled(schedule, NOON - 600, NOON + 6000)) == 11
        assert filled(schedule, NOON + 600, NOON) == []

    def test_too_many_are_refused_before_any_is_made(self) -> None:
        schedule = known("cron * * * * * *")
        assert len(filled(schedule, NOON, NOON + BACKFILL_CAP - 1)) == BACKFILL_CAP
        with pytest.raises(ValueError, match="more than 1,000 ticks lie between; backfill a shorter time"):
            filled(schedule, NOON, NOON + BACKFILL_CAP)

    def test_its_runs_are_those_of_the_ticks(self) -> None:
        """So that what has run already does not run twice."""
        schedule = known("every 1m", catch_up="all")
        tick = due_tick(schedule, NOON + 300)
        assert [run.id for run in filled(schedule, NOON + 60, NOON + 300)] == [run.id for run in tick.runs]


def test_a_run_now_is_beside_the_ticks_and_keeps_the_overlap() -> None:
    schedule = known(DAILY, guards=Guards("active"), grace=60.0, priority=4)
    run = run_now(schedule, "some-id", NOON)
    assert (run.id, run.at, run.expires_at, run.priority) == ("some-id", None, None, 4)
    assert (run.guards, run.unique_key, run.needs) == (Guards("active"), "schedule:report", ())
    assert codec.decode(run.body).origin == Origin("run_now", "report", NOON)


def test_a_trigger_that_cannot_be_read_here_says_so() -> None:
    with pytest.raises(ValueError, match="lunch"):
        due_tick(replace(known(DAILY), trigger="every lunch"), NOON)
