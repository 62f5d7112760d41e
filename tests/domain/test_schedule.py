"""Schedule: what declarations, ticks and commands make of it. The stores' contract shows the same through a store."""

import pytest
from msgspec.structs import replace

from rota.domain.decision import Decision, Reason
from rota.domain.run import NewRun
from rota.domain.schedule import FIRINGS_KEPT, Firing, Missed, Schedule, Tick, advanced, declared, paused, resumed
from tests.domain.timetables import NOON, known, new

KNOWN = replace(
    known("every 1m"), version=5, paused=True, note="held", recent=(Firing(NOON, Reason.ACCEPTED),), since=NOON - 9
)


def test_a_declaration_that_says_the_same_is_the_known_one() -> None:
    again = replace(new("every 1m"), anchor=1.0, next_at=2.0, fires_at=3.0, version=77, since=4.0)
    assert declared(again, KNOWN, NOON + 99) is KNOWN


def test_a_changed_policy_stays_where_the_known_one_stands() -> None:
    changed = declared(new("every 1m", grace=5.0, priority=3), KNOWN, NOON + 99)
    assert changed == replace(KNOWN, grace=5.0, priority=3, version=6)


@pytest.mark.parametrize("other", [new("every 2m"), new("every 1m", start=1.0), new("every 1m", end=1.0)])
def test_changed_times_begin_anew_and_a_pause_stays(other: Schedule) -> None:
    moved = replace(other, anchor=7.0, next_at=8.0, fires_at=9.0)
    expected = replace(moved, version=6, since=NOON + 99, paused=True, note="held", recent=KNOWN.recent)
    assert declared(moved, KNOWN, NOON + 99) == expected


def step(schedule: Schedule, nominals: list[float], missed: Missed | None = None) -> Tick:
    runs = tuple(NewRun(id=f"at {nominal:g}", task="greet", body=b"") for nominal in nominals)
    return Tick(schedule.id, schedule.version, schedule.next_at, NOON + 60, NOON + 61, runs, tuple(nominals), missed)


def test_a_tick_is_remembered_with_its_answers_and_what_was_missed_before_them() -> None:
    tick = step(KNOWN, [NOON, NOON + 1], Missed(1.0, 2.0, 2))
    own, other = Decision(tick.runs[0].id, Reason.ACCEPTED), Decision("other", Reason.ALREADY_RUNNING)
    after = advanced(KNOWN, tick, [own, other])
    assert (after.next_at, after.fires_at, after.version) == (NOON + 60, NOON + 61, KNOWN.version)
    assert after.recent == (
        *KNOWN.recent,
        Firing(2.0, Reason.MISSED),
        Firing(NOON, Reason.ACCEPTED),
        Firing(NOON + 1, Reason.ALREADY_RUNNING, "other"),
    )


def test_the_last_outcomes_are_kept() -> None:
    schedule = KNOWN
    for place in range(50):
        tick = step(schedule, [float(place)])
        schedule = advanced(schedule, tick, [Decision(tick.runs[0].id, Reason.ACCEPTED)])
    assert [firing.nominal for firing in schedule.recent] == [float(place) for place in range(50 - FIRINGS_KEPT, 50)]


def test_pause_and_resume_change_the_version_once() -> None:
    running = replace(KNOWN, paused=False, note=None)
    held = paused(running, "why")
    assert held == replace(running, paused=True, note="why", version=6)
    assert paused(held, "again") is held
    back = resumed(held, "go", NOON + 5)
    assert back == replace(running, note="go", version=7, since=NOON + 5)
    assert resumed(back, "again", NOON + 6) is back


@pytest.mark.parametrize(
    ("missed", "words"),
    [
        (Missed(NOON, NOON, 1), "2026-11-15 12:00:00 UTC"),
        (Missed(NOON, NOON + 60.7, 2), "2 from 2026-11-15 12:00:00 to 2026-11-15 12:01:00 UTC"),
        (Missed(NOON, NOON + 9, 12_345), "12,345 from 2026-11-15 12:00:00 to 2026-11-15 12:00:09 UTC"),
        (Missed(NOON, NOON + 9, 100, True), "at least 100 from 2026-11-15 12:00:00 to 2026-11-15 12:00:09 UTC"),
    ],
)
def test_what_was_missed_in_words(missed: Missed, words: str) -> None:
    assert missed.words == words
