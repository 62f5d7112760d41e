"""Guards: when a key must rest, how far a push may go, and what an end makes of a mark."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.domain.decision import Reason
from rota.domain.guards import Cooldown, Guards, Mark, cooldown_reason, push_due
from rota.domain.run import Run, State
from rota.domain.settlement import inherit, mark_after, pause, resume, supersede, too_late

SPACING, BREAKER = Cooldown(0, 60), Cooldown(3, 600, Reason.BREAKER)
times = st.floats(0, 1e6)


@pytest.mark.parametrize(
    ("mark", "now", "reason"),
    [
        (None, 0.0, None),
        (Mark(), 0.0, None),
        (Mark(100, 100, 0), 159.9, Reason.RESTING),
        (Mark(100, 100, 0), 160.0, None),
        (Mark(None, 100, 2), 160.0, None),
        (Mark(None, 100, 3), 160.0, Reason.BREAKER),
        (Mark(None, 100, 4), 699.9, Reason.BREAKER),
        (Mark(None, 100, 4), 700.0, None),
    ],
)
def test_a_key_rests_by_the_first_rule_that_says_so(mark: Mark | None, now: float, reason: Reason | None) -> None:
    assert cooldown_reason((BREAKER, SPACING), mark, now) == reason


def test_without_rules_nothing_rests() -> None:
    assert cooldown_reason((), Mark(100, 100, 9), 100.0) is None


@given(times, times, times, st.none() | times)
def test_a_push_moves_only_later_and_not_beyond_the_longest_wait(
    created: float, due: float, wanted: float, max_wait: float | None
) -> None:
    moved = push_due(created, due, wanted, max_wait)
    assert moved >= due
    assert moved in (due, wanted, created + (max_wait or 0.0))
    if max_wait is None:
        assert moved == max(due, wanted)
    else:
        assert moved <= max(due, created + max_wait)


@pytest.mark.parametrize(
    ("guards", "reads"),
    [
        (Guards(), False),
        (Guards("queued"), False),
        (Guards("active", max_pending=3), False),
        (Guards("done"), True),
        (Guards(cooldowns=(SPACING,)), True),
    ],
)
def test_marks_are_kept_only_where_a_guard_reads_them(guards: Guards, reads: bool) -> None:
    assert guards.reads_marks is reads


def test_an_end_makes_its_mark() -> None:
    mark = Mark()
    for at, state in enumerate((State.FAILED, State.FAILED, State.CANCELLED)):
        mark = mark_after(mark, Run(id="r", state=state), float(at))
    assert mark == Mark(None, 1.0, 2)
    mark = mark_after(mark, Run(id="r", state=State.SUCCEEDED), 5.0)
    assert mark == Mark(5.0, 5.0, 0)
    assert mark_after(mark, Run(id="r", state=State.FAILED), 6.0) == Mark(5.0, 6.0, 1)


@pytest.mark.parametrize(
    ("run", "key"),
    [
        (Run(id="r"), ""),
        (Run(id="r", key="k"), "k"),
        (Run(id="r", key="k", unique_key="u"), "u"),
    ],
)
def test_a_mark_is_about_what_is_unique_else_about_the_key(run: Run, key: str) -> None:
    assert run.mark_key == key


def test_the_heir_takes_the_earlier_time_and_the_failures() -> None:
    gone = Run(id="gone", due_at=50.0, failures=3, losses=2)
    heir = inherit(Run(id="heir", due_at=90.0, failures=1, parked=True), gone)
    assert (heir.due_at, heir.failures, heir.losses, heir.parked) == (50.0, 3, 0, False)
    assert inherit(Run(id="heir", due_at=9.0, failures=4), gone).due_at == 9.0
    ended = supersede(gone, 77.0)
    assert (ended.state, ended.reason, ended.finished_at) == (State.CANCELLED, Reason.SUPERSEDED, 77.0)


@pytest.mark.parametrize("state", list(State))
def test_only_what_waits_or_runs_is_paused_and_resumed(state: State) -> None:
    run = Run(id="r", state=state)
    asked = pause(run, None)
    assert (asked.state is State.PAUSED) == (state in (State.QUEUED, State.PAUSED))
    assert asked.pause_requested == (state is State.RUNNING)
    back = resume(asked, None)
    assert back == (Run(id="r") if state is State.PAUSED else run)


@pytest.mark.parametrize("state", [state for state in State if state is not State.RUNNING])
def test_a_command_to_pause_that_was_outrun_is_not_taken_back(state: State) -> None:
    run = Run(id="r", state=state, pause_requested=True)
    assert resume(run, None).pause_requested


@pytest.mark.parametrize(
    ("state", "expires_at", "late"),
    [
        (State.QUEUED, 10.0, True),
        (State.QUEUED, 10.1, False),
        (State.QUEUED, None, False),
        (State.PAUSED, 5.0, False),
        (State.RUNNING, 5.0, False),
    ],
)
def test_only_what_waits_can_be_too_late(state: State, expires_at: float | None, late: bool) -> None:
    assert too_late(Run(id="r", state=state, expires_at=expires_at), 10.0) is late
