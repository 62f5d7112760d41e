"""Counts: how many runs a filter finds, all together or by state, task or error; bounded, whatever the filter."""

import time
from collections import Counter
from contextlib import aclosing
from typing import Literal, Protocol

from msgspec import Struct
from msgspec.structs import replace

from rota.client.fleet import is_inner
from rota.domain.run import Run
from rota.store import Reads, RunCounts, RunQuery
from rota.store.paging import COUNT_LIMIT, COUNT_PAGE, COUNT_SECONDS, pages

By = Literal["state", "task", "error"]


class GroupCount(Struct, frozen=True):
    """`value` is the state, the task or the type of the error; None: no error."""

    value: str | None
    count: int


class CountView(Struct, frozen=True):
    """`more`: there are more runs than `count`, or there may be. `groups`: the largest first; None without grouping."""

    count: int
    more: bool
    groups: tuple[GroupCount, ...] | None


class Counts(Reads, Protocol):
    """A client: it reads, and lets the store count."""

    async def counted(self, query: RunQuery, at_most: int) -> RunCounts | None: ...


async def count_view(store: Counts, query: RunQuery, at_most: int, by: By | None = None) -> CountView:
    """Runs of rota's own tasks do not count, as lists do not show them, unless the query names the task."""
    if by != "error" and (counted := await _counted(store, query, at_most)) is not None:
        return _counted_view(counted, at_most, by)
    found: Counter[str | None] = Counter()
    more, begun = False, time.monotonic()
    async with aclosing(pages(store, replace(query, limit=min(COUNT_PAGE, at_most), cursor=None))) as read:
        async for page in read:
            left = at_most - found.total()
            runs = [run for run in page.runs if query.tasks or not is_inner(run.task)]
            found.update(_value(run, by) for run in runs[:left])
            late = page.searched_back_to is not None and time.monotonic() - begun > COUNT_SECONDS
            more = len(runs) > left or (page.cursor is not None and (found.total() >= at_most or late))
            if more:
                break
    groups = tuple(GroupCount(value, count) for value, count in found.most_common())
    return CountView(found.total(), more, None if by is None else groups)


async def _counted(store: Counts, query: RunQuery, at_most: int) -> RunCounts | None:
    """Return what the store counts, without runs of rota's own tasks unless they are named. A store ends a count at a
    number of runs; those that are left out make room for as many others, up to COUNT_LIMIT."""
    most = at_most
    while (counted := await store.counted(query, most)) is not None:
        shown = {place: n for place, n in counted.groups.items() if query.tasks or not is_inner(place[0])}
        met, count = sum(counted.groups.values()), sum(shown.values())
        wider = at_most + min(met - count, COUNT_LIMIT)
        if counted.more or met <= most or count > at_most or wider <= most:
            return RunCounts(shown, counted.more or met > most)
        most = wider
    return None


def _counted_view(counted: RunCounts, at_most: int, by: By | None) -> CountView:
    """Return the counts of the store. One of them, the largest, leaves out what is more than `at_most`."""
    groups: Counter[str | None] = Counter()
    for (task, state), count in counted.groups.items():
        groups[task if by == "task" else state] += count
    found = groups.most_common()
    over = max(0, groups.total() - at_most)
    if over:
        found[0] = found[0][0], found[0][1] - over
    shown = tuple(GroupCount(value, count) for value, count in found if count)
    return CountView(groups.total() - over, counted.more or over > 0, None if by is None else shown)


def _value(run: Run, by: By | None) -> str | None:
    if by == "error":
        return None if run.error is None else run.error.type
    return run.task if by == "task" else str(run.state) if by == "state" else None
