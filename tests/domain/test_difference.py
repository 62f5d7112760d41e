"""Difference: what a start of this code would change, field by field."""

from datetime import UTC, datetime

from msgspec.structs import replace

from rota.domain.difference import Change, Field, Owed, owed, schedule_changes, started, task_changes
from rota.domain.guards import Guards
from rota.domain.intake import Options
from rota.domain.policy import Limit, Policy, Retry
from rota.domain.schedule import CatchUp, Missed, Schedule, declared
from rota.domain.scheduling import Timed, new_schedule
from rota.domain.spec import TaskSpec
from rota.domain.ticks import with_first_tick
from rota.domain.triggers import Trigger

NOW = datetime(2026, 11, 15, tzinfo=UTC).timestamp()
HOUR = 3600.0


def said(
    id: str,
    trigger: str = "daily 09:00",
    policy: Policy | None = None,
    owner: str = "shop",
    catch_up: CatchUp = "latest",
    grace: float | None = None,
) -> Schedule:
    parsed = Trigger.parse(trigger).in_zone("UTC")
    timed = Timed(catch_up=catch_up, grace=grace)
    return new_schedule(id, parsed, timed, id, b"{}", policy or Policy(), Options(), 0, Guards(), owner)


def kept(schedule: Schedule, at: float = NOW - 10) -> dict[str, Schedule]:
    return {schedule.id: declared(with_first_tick(schedule, at), None, at)}


def changes(new: Schedule, stored: dict[str, Schedule]) -> list[Change]:
    return schedule_changes([new], stored, "shop", NOW)


def test_what_is_said_as_before_is_no_change() -> None:
    assert changes(said("a"), kept(said("a"))) == []


def test_a_pause_is_no_change() -> None:
    stored = kept(said("a"))

    assert changes(said("a"), {"a": replace(stored["a"], paused=True, note="a moment")}) == []


def test_what_the_store_does_not_know_is_added_with_its_first_tick() -> None:
    assert changes(said("a"), {}) == [Change("added", "schedule", "a", next_after=NOW + 9 * HOUR)]


def test_other_times_move_the_next_tick() -> None:
    (change,) = changes(said("a", "daily 08:00"), kept(said("a")))

    assert change.fields == (Field("trigger", "daily 09:00 UTC", "daily 08:00 UTC"),)
    assert (change.next_before, change.next_after) == (NOW + 9 * HOUR, NOW + 8 * HOUR)


def test_other_policies_are_told_field_by_field_and_keep_the_next_tick() -> None:
    new = said("a", policy=Policy(retry=Retry(3), timeout=30), grace=600, catch_up="skip")

    (change,) = changes(new, kept(said("a")))

    assert {field.name: (field.before, field.after) for field in change.fields} == {
        "catch_up": ("latest", "skip"),
        "grace": (None, 600.0),
        "retry.limit": (0, 3),
        "timeout": (None, 30),
    }
    assert change.next_before == change.next_after == NOW + 9 * HOUR


def test_what_this_app_no_longer_declares_is_undeclared() -> None:
    stored = kept(said("old")) | kept(said("theirs", owner="other")) | kept(said("by-hand", owner=""))

    assert schedule_changes([], stored, "shop", NOW) == [
        Change("undeclared", "schedule", "old", next_before=NOW + 9 * HOUR)
    ]


def test_what_belongs_to_another_is_taken_and_stays_as_it_is() -> None:
    stored = kept(said("a", "daily 07:00", owner="other"))

    (change,) = changes(said("a"), stored)

    assert (change.kind, change.fields) == ("taken", (Field("owner", "other", "shop"),))
    assert started([said("a")], stored, NOW) == stored


def test_a_tick_that_its_zone_no_longer_has_is_moved() -> None:
    stored = kept(said("a"))
    stale = {"a": replace(stored["a"], next_at=NOW + 10 * HOUR)}  # computed by other rules

    assert changes(said("a"), stale) == [
        Change("moved", "schedule", "a", (), NOW + 10 * HOUR, NOW + 9 * HOUR),
    ]


def test_tasks_are_told_without_their_pause() -> None:
    published = {
        "same": TaskSpec("same", executor="loop", paused=True),
        "other": TaskSpec("other", executor="loop", limit=Limit(3)),
        "held": TaskSpec("held", paused=True),
    }
    new = [
        TaskSpec("same", executor="loop"),
        TaskSpec("other", executor="loop", limit=Limit(5), priority=2),
        TaskSpec("held", executor="loop"),
        TaskSpec("new", executor="loop"),
    ]

    assert task_changes(new, published) == [
        Change("changed", "task", "other", (Field("limit.total", 3, 5), Field("priority", 0, 2))),
        Change("added", "task", "held"),
        Change("added", "task", "new"),
    ]


def test_overdue_schedules_owe_their_catch_up() -> None:
    stored = {
        **kept(said("latest", "every 1h"), NOW - 5.5 * HOUR),
        **kept(said("all", "every 1h", catch_up="all"), NOW - 5.5 * HOUR),
        **kept(said("ahead", "every 1h"), NOW - 0.5 * HOUR),
    }
    stored["held"] = replace(stored["all"], id="held", paused=True)

    found = {each.schedule: each for each in owed(stored, NOW)}

    assert found == {
        "latest": Owed("latest", "latest", 1, Missed(NOW - 4.5 * HOUR, NOW - 1.5 * HOUR, 4)),
        "all": Owed("all", "all", 5, None),
    }
