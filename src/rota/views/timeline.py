"""The time line: what ran when, in rows of segments that are merged to the pixels of a screen."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Literal

from msgspec import Struct

from rota.domain.run import Run, State

By = Literal["task", "schedule", "worker"]
Span = tuple[int, int, int]
"""The first pixel, the one behind the last, and how many calls."""


class Segment(Struct, frozen=True):
    """From pixel `left` up to pixel `right`: `count` calls that ended as `outcome`, or that are "running" or
    "planned"."""

    left: int
    right: int
    outcome: str
    count: int


class TimelineRow(Struct, frozen=True):
    name: str
    segments: Sequence[Segment]


class Window(Struct, frozen=True):
    """The time that is shown, and how many pixels it has."""

    start: float
    end: float
    pixels: int

    def pixel(self, at: float) -> int:
        share = (min(max(at, self.start), self.end) - self.start) / (self.end - self.start)
        return min(self.pixels - 1, int(share * self.pixels))


class Call(Struct, frozen=True):
    """One call of a run, a fire to come, or `count` calls of a minute."""

    row: str
    start: float
    end: float
    outcome: str
    count: int = 1


def calls_of(run: Run, by: By, now: float) -> Iterable[Call]:
    """Return the calls of a run, and the one that is under way."""
    for attempt in run.attempts:
        if (row := _row(run, by, attempt.worker)) is not None:
            yield Call(row, attempt.claimed_at, attempt.ended_at, attempt.outcome)
    if run.state is State.RUNNING and run.claimed_at is not None and (row := _row(run, by, run.worker)) is not None:
        yield Call(row, run.claimed_at, now, "running")


def _row(run: Run, by: By, worker: str | None) -> str | None:
    match by:
        case "task":
            return run.task
        case "worker":
            return worker
        case "schedule":
            return run.origin.of if run.origin.kind in ("schedule", "run_now") else None


def timeline_rows(calls: Iterable[Call], window: Window) -> list[TimelineRow]:
    """Return the rows by name. Calls of one outcome that share a pixel, or touch each other, are one segment."""
    rows: defaultdict[str, defaultdict[str, list[Span]]] = defaultdict(lambda: defaultdict(list))
    for call in calls:
        if call.end >= window.start and call.start < window.end:
            rows[call.row][call.outcome].append((window.pixel(call.start), window.pixel(call.end) + 1, call.count))
    return [TimelineRow(name, _merged(rows[name])) for name in sorted(rows)]


def _merged(outcomes: dict[str, list[Span]]) -> list[Segment]:
    found: list[Segment] = []
    for outcome, spans in outcomes.items():
        spans.sort()
        start, end, count = spans[0][0], spans[0][1], 0
        for first, last, calls in spans:
            if first > end:
                found.append(Segment(start, end, outcome, count))
                start, end, count = first, last, 0
            end, count = max(end, last), count + calls
        found.append(Segment(start, end, outcome, count))
    return sorted(found, key=lambda segment: (segment.left, segment.right, segment.outcome))
