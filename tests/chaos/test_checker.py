"""Each check of the chaos checker finds the broken promise it is there for, and a sound history breaks none."""

from typing import Any

import pytest
from msgspec.structs import replace

from rota.domain.decision import Reason
from rota.domain.run import Attempt, Origin, Run, State
from tests.chaos.checker import CHECKS, Evidence, check
from tests.chaos.history import Event

T = 1000.0


def event(name: str, at: float, **values: object) -> Event:
    return {"event": name, "wall": at, "mono": at, "pid": 1, **values}


def begin(run: str, task: str, at: float, fence: int = 1, key: str | None = None, due: float = T) -> Event:
    return event("begin", at, run=run, fence=fence, task=task, token=run, key=key, due=due, failures=0)


def end(run: str, task: str, at: float, fence: int = 1) -> Event:
    return event("end", at, run=run, fence=fence, task=task)


def acknowledged(run: str, task: str, **more: object) -> Event:
    return event("acknowledged", T, run=run, task=task, token=run, created=True, **more)


def attempt(fence: int, outcome: str, begun: float, ended: float) -> Attempt:
    return Attempt(fence, "w", outcome, begun, ended)


def succeeded(id: str, task: str, begun: float = T + 1, ended: float = T + 2, **more: Any) -> Run:
    return Run(
        id=id,
        task=task,
        state=State.SUCCEEDED,
        fence=1,
        attempts=(attempt(1, "succeeded", begun, ended),),
        created_at=T,
        finished_at=ended,
        due_at=T,
        **more,
    )


def called(
    run: str, task: str, begun: float = T + 1, ended: float = T + 2, key: str | None = None, fence: int = 1
) -> list[Event]:
    return [begin(run, task, begun, fence, key), end(run, task, ended, fence)]


REPLACED_WORK = (
    attempt(1, "lost", T + 1, T + 3),
    attempt(1, "replaced", T + 4, T + 4),
    attempt(2, "succeeded", T + 5, T + 6),
)
"""A run that was lost, and joined by a submit with other arguments before it was called again."""


def tick(nominal: float, id: str | None = None) -> Run:
    return succeeded(id or f"tick{nominal}", "tick", origin=Origin("schedule", "tick-0", nominal))


def sound() -> Evidence:
    """One of each kind, all as promised."""
    ticks = [tick(T + n) for n in range(3)]
    events = [
        acknowledged("a", "plain"),
        *called("a", "plain"),
        acknowledged("f", "flaky", fails=0),
        *called("f", "flaky"),
        *called("l1", "limited", key="k"),
        *called("l2", "limited", T + 3, T + 4, key="k"),
        *called("u1", "lonely", key="k"),
        event("push", T, token="p"),
        acknowledged("p", "pushed", delay=0.5),
        *called("p", "pushed", key="k"),
        event("chain", T, token="c", steps=["c1", "c2"]),
        *called("c1", "first"),
        *called("c2", "second", T + 3, T + 4),
        *called("s", "single"),
        *(one for run in ticks for one in called(run.id, "tick")),
        *called("q1", "paced"),
        *called("q2", "paced", T + 3, T + 4),
        *called("v", "lonely", T + 1, T + 2, "w"),
        *called("v", "lonely", T + 5, T + 6, "w", fence=2),
    ]
    runs = [
        succeeded("a", "plain"),
        succeeded("f", "flaky"),
        succeeded("l1", "limited", key="k"),
        succeeded("l2", "limited", T + 3, T + 4, key="k"),
        succeeded("u1", "lonely", key="k"),
        succeeded("p", "pushed", key="k"),
        succeeded("c1", "first"),
        succeeded("c2", "second", T + 3, T + 4),
        succeeded("s", "single"),
        *ticks,
        succeeded("q1", "paced", origin=Origin("schedule", "paced", T)),
        succeeded("q2", "paced", T + 3, T + 4, origin=Origin("schedule", "paced", T + 1)),
        replace(succeeded("v", "lonely", key="w"), fence=2, attempts=REPLACED_WORK),
    ]
    return Evidence(events, runs, [])


def changed(evidence: Evidence, id: str, **changes: Any) -> Evidence:
    runs = [replace(run, **changes) if run.id == id else run for run in evidence.runs]
    return Evidence(evidence.events, runs, evidence.decisions)


def and_also(evidence: Evidence, *events: Event, runs: tuple[Run, ...] = ()) -> Evidence:
    return Evidence([*evidence.events, *events], [*evidence.runs, *runs], evidence.decisions)


LOST_TWICE = (attempt(1, "lost", T, T + 1), attempt(3, "succeeded", T + 1, T + 2))
WENT_ON = (attempt(1, "succeeded", T, T + 1), attempt(2, "succeeded", T + 1, T + 2))

BROKEN: dict[str, Evidence] = {
    "acknowledged_is_recorded": and_also(sound(), acknowledged("gone", "plain")),
    "only_rota_errors": and_also(sound(), event("raw error", T, kind="simple", error="OSError: no")),
    "a_fence_is_called_once": and_also(sound(), begin("a", "plain", T + 1)),
    "fences_have_no_gaps": changed(sound(), "a", fence=3, losses=1, attempts=LOST_TWICE),
    "a_run_ends_once": changed(sound(), "a", fence=2, attempts=WENT_ON),
    "a_success_stays_a_success": changed(
        sound(), "a", state=State.FAILED, reason=Reason.BAD_RESULT, attempts=(attempt(1, "bad_result", T, T + 2),)
    ),
    "no_other_failures": changed(sound(), "a", state=State.CANCELLED, reason=Reason.CANCELLED),
    "failures_and_losses_are_counted": changed(sound(), "a", losses=1),
    "retries_are_used_as_told": and_also(sound(), acknowledged("f", "flaky", fails=2)),
    "nothing_starts_early": and_also(
        sound(), begin("e", "plain", T + 1, due=T + 2), end("e", "plain", T + 3), runs=(succeeded("e", "plain"),)
    ),
    "a_push_is_kept": and_also(
        sound(), event("push", T, token="p"), {**acknowledged("p", "pushed", delay=1.5), "wall": T + 0.1}
    ),
    "limits_hold": and_also(
        sound(), *called("l3", "limited", T + 1.5, T + 1.6, key="k"), runs=(succeeded("l3", "limited", key="k"),)
    ),
    "equals_stay_alone": and_also(
        sound(), *called("u2", "lonely", key="k"), runs=(succeeded("u2", "lonely", key="k"),)
    ),
    "each_tick_once": and_also(sound(), *called("again", "tick"), runs=(tick(T + 1, "again"),)),
    "queued_ticks_wait_for_each_other": changed(sound(), "q1", origin=Origin("schedule", "paced", T + 2)),
    "chains_keep_their_order": and_also(sound(), begin("c2", "second", T + 1.5, fence=2)),
    "at_most_once_is_kept": and_also(sound(), begin("s", "single", T + 5, fence=2)),
    "checkpoints_are_of_the_same_work": and_also(
        sound(), event("foreign checkpoint", T, run="v", token="new", saved="old")
    ),
    "nothing_is_stuck": and_also(sound(), runs=(Run(id="w", task="plain"),)),
}


def test_a_sound_history_breaks_no_promise() -> None:
    assert check(sound()) == []


@pytest.mark.parametrize("name", [each.__name__ for each in CHECKS])
def test_every_check_finds_what_breaks_it(name: str) -> None:
    assert {problem.partition(":")[0] for problem in check(BROKEN[name])} >= {name}


def test_a_tick_that_is_neither_run_nor_recorded_is_owed() -> None:
    seen = sound()
    without = Evidence(seen.events, [run for run in seen.runs if run.origin.nominal != T + 1], [])
    assert check(without) == ["each_tick_once: tick-0 owes 3 ticks, made 2 runs and recorded 0 as missed"]


def test_a_handler_whose_lease_was_lost_may_end_beside_the_next() -> None:
    """A frozen worker wakes: its call goes on for a moment, and its ending is refused."""
    attempts = (attempt(1, "lost", T + 1, T + 3), attempt(2, "succeeded", T + 3, T + 5))
    slow = changed(sound(), "l1", fence=2, losses=1, attempts=attempts, finished_at=T + 5)
    seen = changed(slow, "l2", attempts=(attempt(1, "succeeded", T + 6, T + 7),), finished_at=T + 7)
    events = [one for one in seen.events if one.get("run") not in ("l1", "l2")]
    late = [begin("l1", "limited", T + 1, key="k"), end("l1", "limited", T + 4)]
    again = [begin("l1", "limited", T + 3, fence=2, key="k"), end("l1", "limited", T + 5, fence=2)]
    assert check(Evidence([*events, *late, *again, *called("l2", "limited", T + 6, T + 7, "k")], seen.runs, [])) == []
