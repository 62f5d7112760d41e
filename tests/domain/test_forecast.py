"""Forecast: fires one by one where they can be told, by their pace where they are too many, and the seats they take."""

from datetime import UTC, date, datetime
from zoneinfo import ZoneInfo

from msgspec.structs import replace

from rota.domain.forecast import DAY, HOUR, MOST, Collision, Pace, forecast
from rota.domain.guards import Guards
from rota.domain.intake import Options
from rota.domain.policy import Policy
from rota.domain.schedule import Overlap, Schedule
from rota.domain.scheduling import Timed, new_schedule
from rota.domain.ticks import with_first_tick
from rota.domain.triggers import Trigger

NOW = datetime(2026, 11, 15, tzinfo=UTC).timestamp()
SUNDAY = date(2026, 11, 15)


def scheduled(id: str, trigger: str, overlap: Overlap = "skip") -> Schedule:
    timed = Timed(overlap=overlap)
    parsed = Trigger.parse(trigger).in_zone("UTC")
    return with_first_tick(new_schedule(id, parsed, timed, id, b"{}", Policy(), Options(), 0, Guards()), NOW)


def test_fires_of_all_schedules_come_in_the_order_of_time() -> None:
    found = forecast([scheduled("b", "daily 09:00"), scheduled("a", "daily 08:00")], {}, NOW, NOW + 2 * DAY, UTC)

    assert [((fire.at - NOW) / HOUR, fire.schedule) for fire in found.fires] == [
        (8, "a"),
        (9, "b"),
        (32, "a"),
        (33, "b"),
    ]
    assert found.counts == {(date(2026, 11, day), hour): 1 for day in (15, 16) for hour in (8, 9)}
    assert found.until == found.end


def test_what_is_paused_or_over_does_not_fire() -> None:
    paused = replace(scheduled("paused", "daily 09:00"), paused=True)
    over = scheduled("over", "at 2026-11-14T00:00:00Z")

    assert forecast([paused, over], {}, NOW, NOW + DAY, UTC).fires == []


def test_schedules_that_fire_in_the_same_minute_collide() -> None:
    found = forecast(
        [scheduled("a", "daily 09:00"), scheduled("b", "daily 09:00:30"), scheduled("c", "daily 09:01")],
        {},
        NOW,
        NOW + 2 * DAY,
        UTC,
    )

    assert found.collisions == [Collision(("a", "b"), (NOW + 9 * HOUR, NOW + 33 * HOUR))]


def test_hours_are_those_of_the_zone() -> None:
    found = forecast([scheduled("a", "daily 20:00")], {"a": 1800}, NOW, NOW + DAY, ZoneInfo("Asia/Kolkata"))

    assert found.counts == {(date(2026, 11, 16), 1): 1}  # 01:30 there
    assert found.seats == {(date(2026, 11, 16), 1): 0.5}


def test_a_long_run_keeps_its_seat_over_the_hours() -> None:
    found = forecast([scheduled("a", "daily 09:30")], {"a": 1.5 * HOUR}, NOW, NOW + DAY, UTC)

    assert found.seats == {(SUNDAY, 9): 0.5, (SUNDAY, 10): 1.0}


def test_fires_that_meet_a_run_take_a_seat_only_where_overlap_allows() -> None:
    def seats(overlap: Overlap) -> tuple[list[bool], float]:
        hourly = scheduled("a", "cron 0 9,10 * * *", overlap)
        found = forecast([hourly], {"a": 1.5 * HOUR}, NOW, NOW + 12 * HOUR, UTC)
        return [fire.meets for fire in found.fires], sum(found.seats.values())

    assert seats("skip") == ([False, True], 1.5)
    assert seats("allow") == ([False, False], 3.0)
    assert seats("queue")[0] == [False, False]


def test_a_queue_holds_one_and_the_next_tick_joins_it() -> None:
    often = scheduled("a", "cron 0,10,20,30 9 * * *", "queue")

    found = forecast([often], {"a": HOUR}, NOW, NOW + 12 * HOUR, UTC)

    assert [fire.meets for fire in found.fires] == [False, False, True, True]


def test_a_frequent_schedule_is_told_by_its_pace_and_takes_its_seats() -> None:
    minutely = scheduled("often", "cron * 8-19 * * *", "allow")

    found = forecast([minutely], {"often": 120.0}, NOW, NOW + 2 * DAY, UTC)

    assert (found.fires, found.frequent) == ([], [Pace("often", "often", 720)])
    assert {hour for (_, hour), busy in found.seats.items() if busy} == set(range(8, 20))
    assert found.seats[date(2026, 11, 16), 8] == 2.0


def test_a_schedule_of_seconds_costs_no_more_than_a_sample() -> None:
    found = forecast([scheduled("often", "every 1s")], {"often": 5.0}, NOW, NOW + 30 * DAY, UTC)

    assert found.frequent == [Pace("often", "often", 86_400)]
    assert max(found.seats.values()) == 1.0  # overlap="skip": never two at once


def test_more_fires_than_can_be_told_are_cut_where_that_is_said() -> None:
    many = [scheduled(f"s{n}", "every 10m") for n in range(200)]

    found = forecast(many, {}, NOW, NOW + DAY, UTC)

    assert len(found.fires) == MOST
    assert found.fires[-1].at <= found.until < found.end


def test_a_trigger_of_a_newer_version_is_named_and_left_out() -> None:
    odd = replace(scheduled("odd", "daily 09:00"), trigger="whenever")

    found = forecast([odd, scheduled("a", "daily 09:00")], {}, NOW, NOW + DAY, UTC)

    assert (found.unreadable, len(found.fires)) == (["odd"], 1)
