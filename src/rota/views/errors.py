"""Errors: failed runs by what went wrong, so that a thousand failures are a few lines."""

import re
from collections.abc import Iterable, Sequence

from msgspec import Struct

from rota.domain.run import Run
from rota.domain.text import one_line
from rota.views.values import iso

SAMPLES = 5
"""Runs that a group names."""
SPARK = 24
"""Parts of the time of a list, for each of which a group says how often it failed."""
LONGEST = 200
_VARYING = re.compile(r"0x[0-9a-fA-F]+|\b[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b|\d+(?:[.,:]\d+)*")


class ErrorGroup(Struct, frozen=True):
    """Failed runs of one task with the same type of error and the same message but for its numbers. `spark` counts them
    in equal parts of the time of the list, the oldest part first."""

    task: str
    type: str
    message: str
    count: int
    first: str
    last: str
    runs: Sequence[str]
    spark: Sequence[int]


def pattern_of(message: str) -> str:
    """Return a message with `#` for each number, address and UUID."""
    return one_line(_VARYING.sub("#", message[: 5 * LONGEST]))[:LONGEST]


def error_groups(runs: Iterable[Run], since: float, now: float) -> list[ErrorGroup]:
    """Return the groups of failed runs, the most frequent first. The last failures of a group come first in `runs`."""
    found: dict[tuple[str, str, str], list[Run]] = {}
    for run in runs:
        kind, message = ("", run.note or "") if run.error is None else (run.error.type, run.error.message)
        name = run.task, kind or str(run.reason or "failed"), pattern_of(message)
        found.setdefault(name, []).append(run)
    groups = [_group(*name, failed, since, now) for name, failed in found.items()]
    return sorted(groups, key=lambda group: (-group.count, group.task, group.type, group.message))


def _group(task: str, kind: str, message: str, failed: list[Run], since: float, now: float) -> ErrorGroup:
    ends = [run.finished_at or 0.0 for run in failed]
    spark, width = [0] * SPARK, max(now - since, 1e-6) / SPARK
    for end in ends:
        spark[min(SPARK - 1, max(0, int((end - since) / width)))] += 1
    runs = [run.id for run in failed[:SAMPLES]]
    return ErrorGroup(task, kind, message, len(failed), iso(min(ends)), iso(max(ends)), runs, spark)
