"""Paging: all runs or rows of a query, however many there are, read one page after the other."""

import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import TypeVar

from msgspec.structs import replace

from rota.domain.fan import Fan, awaited_fan
from rota.domain.run import Progress, Run
from rota.domain.schedule import Schedule
from rota.domain.spec import TaskSpec
from rota.store.port import Reads
from rota.store.queries import ALL_ROWS, Count, Page, RowQuery, RunQuery
from rota.store.reports import WorkerSeen
from rota.store.values import Reply

Named = TypeVar("Named", bound=Schedule | TaskSpec | WorkerSeen)


async def pages(store: Reads, query: RunQuery) -> AsyncGenerator[Page]:
    """Yield the runs of `query` in pages of `query.limit`, newest first. A page may be empty although more follow.

    Wrap the generator in `aclosing` if you may stop before the last page: asyncio closes an abandoned one only later,
    in a task of its own.
    """
    while True:
        page = await store.runs(query)
        yield page
        if page.cursor is None:
            return
        query = replace(query, cursor=page.cursor)


async def all_runs(store: Reads, query: RunQuery) -> AsyncGenerator[Run]:
    """Yield every run of `query`, newest first."""
    async with aclosing(pages(store, query)) as found:
        async for page in found:
            for run in page.runs:
                yield run


async def first_run(store: Reads, query: RunQuery) -> Run | None:
    """Return the newest run of `query`, None if there is none."""
    async with aclosing(all_runs(store, query)) as found:
        return await anext(found, None)


COUNT_LIMIT = 10_000
"""The most runs that `count_runs` counts."""
COUNT_SECONDS = 1.0
"""Seconds after which `count_runs` begins no further page."""
COUNT_PAGE = 500


async def count_runs(store: Reads, query: RunQuery, at_most: int = COUNT_LIMIT) -> Count:
    """Return how many runs `query` finds. The count stops at `at_most`, and after COUNT_SECONDS of a search."""
    counted, begun = 0, time.monotonic()
    async with aclosing(pages(store, replace(query, limit=min(COUNT_PAGE, at_most), cursor=None))) as found:
        async for page in found:
            counted += len(page.runs)
            late = page.searched_back_to is not None and time.monotonic() - begun > COUNT_SECONDS
            if page.cursor is not None and (counted >= at_most or late):
                return Count(min(counted, at_most), True)
    return Count(min(counted, at_most), counted > at_most)


async def row_pages(store: Reads, kind: type[Named], query: RowQuery = ALL_ROWS) -> AsyncGenerator[Reply[Named]]:
    """Yield the rows of `query` in pages of `query.limit`, by name. Only an empty page is surely the last."""
    while (page := await store.rows(kind, query)).items:
        yield page
        last = page.items[-1]
        query = replace(query, after=last.id if isinstance(last, Schedule) else last.name)


async def all_rows(store: Reads, kind: type[Named], query: RowQuery = ALL_ROWS) -> AsyncGenerator[Named]:
    """Yield every row of `query`, by name."""
    async with aclosing(row_pages(store, kind, query)) as found:
        async for page in found:
            for row in page.items:
                yield row


async def with_fans(store: Reads, page: Page) -> Page:
    """Return `page` with the progress of the gathers that wait: how many children have ended. It reads nothing if none
    waits."""
    waiting = {fan for run in page.runs if (fan := awaited_fan(run.needs)) is not None}
    if not waiting:
        return page
    fans = {fan.id: fan for fan in (await store.rows(Fan, RowQuery(names=sorted(waiting)))).items}

    def seen(run: Run) -> Run:
        fan = fans.get(awaited_fan(run.needs) or "")
        return run if fan is None else replace(run, progress=Progress(fan.share, fan.words))

    return replace(page, runs=[seen(run) for run in page.runs])
