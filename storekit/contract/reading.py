"""runs and depths: what people and handles read."""

import pytest
from msgspec.structs import replace

from rota.domain.lifecycle import Succeeded
from rota.domain.run import NewRun, State
from rota.store import Depth, RunQuery
from storekit.contract.stage import Stage, Staged, ids, new_run


class ReadContract(Staged):
    async def pages(self, stage: Stage, query: RunQuery, between: list[NewRun] | None = None) -> list[list[str]]:
        """Return all pages. The runs `between` are put after the first page."""
        pages: list[list[str]] = []
        while True:
            page = await stage.store.runs(query)
            pages.append(ids(page.runs))
            if page.cursor is None:
                return pages
            if between:
                await stage.put(*between)
                between = None
            query = replace(query, cursor=page.cursor)

    async def test_runs_come_in_the_order_of_the_asked_ids_without_unknown_ones(self, stage: Stage) -> None:
        news = [new_run() for _ in range(3)]
        await stage.put(*news)
        wanted = [news[2].id, "never-put", news[0].id]
        page = await stage.store.runs(RunQuery(ids=wanted))
        assert (ids(page.runs), page.cursor) == ([news[2].id, news[0].id], None)
        assert (await stage.store.runs(RunQuery(ids=[]))).runs == []

    async def test_the_newest_run_comes_first(self, stage: Stage) -> None:
        news = [new_run(priority=i, delay=60 * i) for i in (2, 3, 1)]
        for new in news:
            await stage.put(new)
        assert ids((await stage.store.runs(RunQuery())).runs) == ids(news[::-1])

    @pytest.mark.parametrize(("count", "sizes"), [(0, [0]), (3, [3]), (4, [3, 1]), (6, [3, 3]), (7, [3, 3, 1])])
    async def test_paging_has_no_gaps_and_no_doubles(self, stage: Stage, count: int, sizes: list[int]) -> None:
        news = [new_run() for _ in range(count)]
        await stage.put(*news)
        pages = await self.pages(stage, RunQuery(limit=3))
        assert [len(page) for page in pages] == sizes
        assert [id for page in pages for id in page] == ids(news[::-1])

    async def test_runs_that_come_in_between_do_not_move_the_pages(self, stage: Stage) -> None:
        news = [new_run() for _ in range(5)]
        await stage.put(*news)
        pages = await self.pages(stage, RunQuery(limit=2), between=[new_run(), new_run()])
        assert [id for page in pages for id in page] == ids(news[::-1])

    async def sample(self, stage: Stage) -> None:
        """Put runs: a and b have ended, c runs, d is cancelled, the others wait."""
        places = {"a": "t1k1", "b": "t2k1", "c": "t1k2", "d": "t2k2", "e": "t1k2", "f": "t2k1", "g": "t1"}
        news = {id: new_run(place[:2], id=id, key=place[2:] or None) for id, place in places.items()}
        await stage.put(*news.values())
        runs = (await stage.claim(tasks=["t1", "t2"], free=3)).runs
        for run in runs[:2]:
            await stage.end(run, Succeeded())
        await stage.cancel(news["d"])

    async def test_conditions_hold_together(self, stage: Stage) -> None:
        await self.sample(stage)
        expected = [
            (RunQuery(), "gfedcba"),
            (RunQuery(state=[State.QUEUED]), "gfe"),
            (RunQuery(state=[State.RUNNING, State.CANCELLED]), "dc"),
            (RunQuery(task="t1"), "geca"),
            (RunQuery(key="k1"), "fba"),
            (RunQuery(task="t1", key="k1"), "a"),
            (RunQuery(task="t1", key="k2", state=[State.QUEUED]), "e"),
            (RunQuery(task="t3"), ""),
            (RunQuery(key=""), ""),
            (RunQuery(state=[State.PAUSED]), ""),
        ]
        for query, found in expected:
            assert "".join(ids((await stage.store.runs(query)).runs)) == found

    async def test_conditions_hold_on_every_page(self, stage: Stage) -> None:
        await self.sample(stage)
        assert await self.pages(stage, RunQuery(task="t1", limit=1)) == [["g"], ["e"], ["c"], ["a"]]
        assert await self.pages(stage, RunQuery(key="k1", limit=2)) == [["f", "b"], ["a"]]

    async def test_depths_count_what_is_unfinished(self, stage: Stage) -> None:
        assert (await stage.store.depths()).items == []
        await self.sample(stage)
        await stage.put(new_run("t0", delay=3600))
        assert (await stage.store.depths()).items == [Depth("t0", 1, 0), Depth("t1", 2, 1), Depth("t2", 1, 0)]

    async def test_a_task_with_ended_runs_only_has_no_depth(self, stage: Stage) -> None:
        await stage.ended()
        assert (await stage.store.depths()).items == []
