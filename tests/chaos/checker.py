"""The checker: every promise of the README as a function from the evidence of a chaos run to the broken cases.

The evidence is what handlers and submitters wrote themselves, and what the store says afterwards.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

from rota.domain.decision import DecisionCount, Reason
from rota.domain.joins import REPLACED
from rota.domain.run import ATTEMPTS_KEPT, Attempt, Run, State
from tests.chaos.history import Event
from tests.chaos.tasks import PER_KEY, RETRY, TOTAL

Call = tuple[str, int]
"""A run and its fence: one claim, so one call."""
Span = tuple[float, float]

CLOCK = 0.002
"""Seconds by which a process may read its clock before the store's: both are of one machine, but not one call."""
STAMP = 0.05
"""Seconds by which stamps of one server may cross: a transaction takes its time before it commits."""
JOINED = ("saver", "pushed")
"""Tasks with `unique="queued"`: a run of theirs may supersede an equal one, and then inherits what that one counts."""


@dataclass(frozen=True)
class Evidence:
    events: list[Event]
    runs: list[Run]
    decisions: list[DecisionCount]

    def of(self, event: str) -> list[Event]:
        return [seen for seen in self.events if seen["event"] == event]

    def count(self, event: str) -> int:
        return len(self.of(event))

    @cached_property
    def by_id(self) -> dict[str, Run]:
        return {run.id: run for run in self.runs}

    @cached_property
    def begins(self) -> dict[Call, Event]:
        return {(event["run"], event["fence"]): event for event in self.of("begin")}

    @cached_property
    def calls(self) -> dict[str, list[Event]]:
        """The beginnings of each run's calls."""
        found: dict[str, list[Event]] = defaultdict(list)
        for event in self.of("begin"):
            found[event["run"]].append(event)
        return found

    @cached_property
    def ends(self) -> dict[Call, Event]:
        """The calls whose handler came to its last line."""
        return {(event["run"], event["fence"]): event for event in self.of("end")}

    @cached_property
    def attempts(self) -> dict[Call, Attempt]:
        return {(run.id, attempt.fence): attempt for run in self.runs for attempt in calls_of(run)}

    @cached_property
    def cancelled(self) -> set[str]:
        return {event["run"] for event in self.of("cancel")}

    def whole(self) -> Iterator[Run]:
        """The runs whose every attempt is still known."""
        return (run for run in self.runs if run.fence < ATTEMPTS_KEPT)


def calls_of(run: Run) -> list[Attempt]:
    """The attempts that were calls; a row between them says that a join replaced the work."""
    return [attempt for attempt in run.attempts if attempt.outcome != REPLACED]


Check = Callable[[Evidence], Iterable[str]]


def acknowledged_is_recorded(seen: Evidence) -> Iterator[str]:
    for event in seen.of("acknowledged"):
        if event["run"] not in seen.by_id:
            yield f"{event['task']} {event['run']} was acknowledged and is not in the store"
    for event in seen.of("chain"):
        for step in event["steps"]:
            if step not in seen.by_id:
                yield f"step {step} of a chain was acknowledged and is not in the store"


def only_rota_errors(seen: Evidence) -> Iterator[str]:
    for event in seen.of("raw error"):
        yield f"{event['kind']} raised {event['error']}"


def a_fence_is_called_once(seen: Evidence) -> Iterator[str]:
    calls = Counter((event["run"], event["fence"]) for event in seen.of("begin"))
    for (run, fence), count in calls.items():
        if count > 1:
            yield f"run {run} was called {count} times with fence {fence}"


def fences_have_no_gaps(seen: Evidence) -> Iterator[str]:
    for run in seen.runs:
        fences = [attempt.fence for attempt in calls_of(run)]
        if fences != list(range(run.fence - len(fences) + 1, run.fence + 1)):
            yield f"{run.task} {run.id} has fence {run.fence} and attempts with the fences {fences}"


def a_run_ends_once(seen: Evidence) -> Iterator[str]:
    for run in seen.runs:
        outcomes = [attempt.outcome for attempt in calls_of(run)]
        if outcomes.count("succeeded") > 1 or "succeeded" in outcomes[:-1]:
            yield f"{run.task} {run.id} went on after its success: {outcomes}"
        if run.state is State.SUCCEEDED and outcomes[-1:] != ["succeeded"]:
            yield f"{run.task} {run.id} is succeeded, but its last call ended {outcomes[-1:]}"
        if run.state is State.SUCCEEDED and (run.id, run.fence) not in seen.ends:
            yield f"{run.task} {run.id} is succeeded, but the handler of fence {run.fence} never came to its end"


def a_success_stays_a_success(seen: Evidence) -> Iterator[str]:
    """A handler that came to its end is recorded as succeeded, unless its lease was lost before."""
    for call in seen.ends:
        attempt = seen.attempts.get(call)
        allowed = {"succeeded", "lost"} | ({"cancelled"} if call[0] in seen.cancelled else set())
        if attempt is not None and attempt.outcome not in allowed:
            yield f"run {call[0]}: the handler of fence {call[1]} succeeded; {attempt.outcome} was recorded"


def no_other_failures(seen: Evidence) -> Iterator[str]:
    """A run fails only by the word of its handler, or because `lost="fail"` says so."""
    for run in seen.runs:
        by_word = run.task in ("flaky", "paced") and run.reason is Reason.FAILED
        at_most_once = run.task == "single" and run.reason is Reason.LOST
        if run.state is State.FAILED and not by_word and not at_most_once:
            yield f"{run.task} {run.id} is failed: {run.reason} {run.error}"
        superseded = run.task in JOINED and run.reason is Reason.SUPERSEDED
        if run.state is State.CANCELLED and run.id not in seen.cancelled and not superseded:
            yield f"{run.task} {run.id} is cancelled, and nobody asked for it: {run.reason}"


def failures_and_losses_are_counted(seen: Evidence) -> Iterator[str]:
    for run in seen.whole():
        last_work = [attempt.outcome for attempt in run.attempts]
        while REPLACED in last_work:  # the arguments that joined began anew
            last_work = last_work[last_work.index(REPLACED) + 1 :]
        outcomes = Counter(last_work)
        counted, charged = (run.failures, run.losses), (outcomes["failed"], outcomes["lost"])
        if run.task not in JOINED and counted != charged:
            yield f"{run.task} {run.id} counts (failures, losses) {counted}; its attempts show {charged}"


def retries_are_used_as_told(seen: Evidence) -> Iterator[str]:
    for event in seen.of("acknowledged"):
        run = seen.by_id.get(event["run"])
        if event["task"] != "flaky" or run is None or not run.state.final:
            continue
        fails = min(event["fails"], (RETRY.limit or 0) + 1)
        expected = State.SUCCEEDED if event["fails"] <= RETRY.limit else State.FAILED
        if (run.state, run.failures) != (expected, fails):
            yield f"flaky {run.id} should be {expected} after {fails} failures: {run.state} after {run.failures}"


def nothing_starts_early(seen: Evidence) -> Iterator[str]:
    for event in seen.of("begin"):
        if event["wall"] < event["due"] - CLOCK:
            yield f"{event['task']} {event['run']} began {event['due'] - event['wall']:.3f} s before it was due"


def a_push_is_kept(seen: Evidence) -> Iterator[str]:
    """A call that begins after a push was acknowledged begins no sooner than the push says."""
    asked = {event["token"]: event["wall"] for event in seen.of("push")}
    for event in seen.of("acknowledged"):
        if event["task"] == "pushed":
            due = asked[event["token"]] + event["delay"]
            for began in seen.calls.get(event["run"], []):
                if event["wall"] < began["wall"] < due - CLOCK:
                    yield f"pushed {event['run']} began {due - began['wall']:.3f} s before its last push allowed"


def limits_hold(seen: Evidence) -> Iterator[str]:
    """At every instant, by what handlers wrote and by the stamps of the store."""
    yield from _crowds("limited, by its handlers", _handlers(seen, "limited"), 0.0)
    yield from _crowds("limited, by its leases", _leases(seen, "limited"), STAMP)


def equals_stay_alone(seen: Evidence) -> Iterator[str]:
    """`unique="active"`: no two unfinished runs of one key at any instant."""
    lives: dict[str, list[Span]] = defaultdict(list)
    for run in seen.runs:
        if run.task == "lonely" and run.finished_at is not None:
            lives[run.key or ""].append((run.created_at, run.finished_at))
    for key, spans in lives.items():
        if _most(spans, STAMP) > 1:
            yield f"two unfinished runs of lonely had the key {key} at the same time"
    for key, spans in _by_key(_handlers(seen, "lonely")).items():
        if _most(spans, 0.0) > 1:
            yield f"two handlers of lonely worked on the key {key} at the same time"


def each_tick_once(seen: Evidence) -> Iterator[str]:
    ticks: dict[str, Counter[float]] = defaultdict(Counter)
    for run in seen.runs:
        if run.task == "tick":
            ticks[run.origin.of or ""][run.origin.nominal or 0.0] += 1
    for schedule, nominals in sorted(ticks.items()):
        missed = sum(
            decided.count
            for decided in seen.decisions
            if decided.reason is Reason.MISSED and decided.key == f"schedule:{schedule}"
        )
        for nominal, count in nominals.items():
            if count > 1:
                yield f"tick {nominal} of {schedule} made {count} runs"
        owed = round(max(nominals) - min(nominals)) + 1
        if owed > len(nominals) + missed:
            yield f"{schedule} owes {owed} ticks, made {len(nominals)} runs and recorded {missed} as missed"


def queued_ticks_wait_for_each_other(seen: Evidence) -> Iterator[str]:
    """`overlap="queue"`: a run of the schedule waits until the one before has ended, with all its retries."""
    spans = [span for _, span in _handlers(seen, "paced")]
    if (most := _most(spans, 0.0)) > 1:
        yield f"{most} calls of one schedule with overlap=queue worked at the same time"
    started: dict[str, float] = {}
    for event in seen.of("begin"):
        if event["task"] == "paced":
            started.setdefault(event["run"], event["mono"])
    order = [
        run.origin.nominal or 0.0 for id in sorted(started, key=started.__getitem__) if (run := seen.by_id.get(id))
    ]
    if order != sorted(order):
        yield f"the ticks of a schedule with overlap=queue were called in the order {order}"


def chains_keep_their_order(seen: Evidence) -> Iterator[str]:
    for event in seen.of("chain"):
        for parent, child in zip(event["steps"], event["steps"][1:], strict=False):
            run = seen.by_id.get(parent)
            ended = seen.ends.get((parent, run.fence)) if run is not None else None
            for began in seen.calls.get(child, []):
                if ended is None or began["mono"] < ended["mono"]:
                    yield f"step {child} of a chain began before {parent} had ended"


def at_most_once_is_kept(seen: Evidence) -> Iterator[str]:
    calls = Counter(event["run"] for event in seen.of("begin") if event["task"] == "single")
    for run, count in calls.items():
        if count > 1:
            yield f'single {run} has lost="fail" and was called {count} times'


def checkpoints_are_of_the_same_work(seen: Evidence) -> Iterator[str]:
    for event in seen.of("foreign checkpoint"):
        yield f"saver {event['run']} was given the checkpoint of other arguments"


def nothing_is_stuck(seen: Evidence) -> Iterator[str]:
    for run in seen.runs:
        if not run.state.final:
            yield f"{run.task} {run.id} is {run.state} at the end, due {run.due_at}, needs {run.needs}"


CHECKS: tuple[Check, ...] = (
    acknowledged_is_recorded,
    only_rota_errors,
    a_fence_is_called_once,
    fences_have_no_gaps,
    a_run_ends_once,
    a_success_stays_a_success,
    no_other_failures,
    failures_and_losses_are_counted,
    retries_are_used_as_told,
    nothing_starts_early,
    a_push_is_kept,
    limits_hold,
    equals_stay_alone,
    each_tick_once,
    queued_ticks_wait_for_each_other,
    chains_keep_their_order,
    at_most_once_is_kept,
    checkpoints_are_of_the_same_work,
    nothing_is_stuck,
)


def check(seen: Evidence) -> list[str]:
    """The broken cases of all checks, each with the name of its check."""
    return [f"{check.__name__}: {case}" for check in CHECKS for case in check(seen)]


def _handlers(seen: Evidence, task: str) -> list[tuple[str, Span]]:
    """The key and the time of each call that was not lost. A lost call may go on beside the next one: its worker was
    frozen or cut off, and its ending is refused."""
    found: list[tuple[str, Span]] = []
    for call, end in seen.ends.items():
        attempt = seen.attempts.get(call)
        if end["task"] == task and attempt is not None and attempt.outcome != "lost":
            begin = seen.begins[call]
            found.append((begin["key"] or "", (begin["mono"], end["mono"])))
    return found


def _leases(seen: Evidence, task: str) -> list[tuple[str, Span]]:
    return [
        (run.key or "", (attempt.claimed_at, attempt.ended_at))
        for run in seen.runs
        if run.task == task
        for attempt in run.attempts
    ]


def _crowds(what: str, calls: list[tuple[str, Span]], tolerance: float) -> Iterator[str]:
    if (most := _most([span for _, span in calls], tolerance)) > TOTAL:
        yield f"{most} calls of {what}, at once; the limit is {TOTAL}"
    for key, spans in _by_key(calls).items():
        if (most := _most(spans, tolerance)) > PER_KEY:
            yield f"{most} calls of {what}, at once for the key {key}; the limit is {PER_KEY}"


def _by_key(calls: list[tuple[str, Span]]) -> dict[str, list[Span]]:
    spans: dict[str, list[Span]] = defaultdict(list)
    for key, span in calls:
        spans[key].append(span)
    return spans


def _most(spans: list[Span], tolerance: float) -> int:
    """How many of these spans overlap at most, when each ends `tolerance` seconds sooner."""
    changes = [(begin, 1) for begin, _ in spans] + [(max(begin, end - tolerance), -1) for begin, end in spans]
    now = most = 0
    for _, change in sorted(changes):
        now += change
        most = max(most, now)
    return most
