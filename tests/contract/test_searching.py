"""Searches beside the model can be repeated, and one that fails leaves nothing open."""

import re
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import pytest
from hypothesis import Phase, settings
from msgspec.structs import replace

from rota.domain.decision import Decision
from rota.domain.run import NewRun, Run
from rota.domain.settlement import Settlement, Verdict
from rota.store import AuditEntry, Backend, Hint, Plan, Reply, Store
from rota.stores.memory.book import MemoryBook
from rota.stores.memory.store import MemoryStore
from storekit.comparison import Disagreement, play, search


class Watched(MemoryStore):
    """A store whose clock stands still, that says what it was asked and what of it is open."""

    def __init__(self, told: list[Sequence[NewRun]], opened: Counter[str]) -> None:
        self.backend = WatchedBackend(self, opened)
        super().__init__(MemoryBook(1000), lambda: 1_000_000 + self.backend.skew)
        self._told = told
        self._opened = opened

    async def put(
        self, runs: Sequence[NewRun], plan: Plan | None = None, audit: AuditEntry | None = None
    ) -> Reply[Decision]:
        self._told.append(runs)
        return await super().put(runs, plan, audit)

    @asynccontextmanager
    async def _changes(self) -> AsyncGenerator[AsyncIterator[Hint]]:
        self._opened["changes"] += 1
        try:
            async with super().changes() as hints:
                yield hints
        finally:
            self._opened["changes"] -= 1

    def changes(self, worker: str | None = None) -> AbstractAsyncContextManager[AsyncIterator[Hint]]:
        return self._changes()


class WatchedBackend:
    url = "watched://"
    poll = 5.0
    submits_within = None

    def __init__(self, store: Watched, opened: Counter[str]) -> None:
        self.skew = 0.0
        self._store = store
        self._opened = opened

    @asynccontextmanager
    async def open(self) -> AsyncGenerator[Store]:
        self._opened["store"] += 1
        try:
            yield self._store
        finally:
            self._opened["store"] -= 1


class Forgetful(Watched):
    """Accepts what it is given and keeps none of it."""

    async def put(
        self, runs: Sequence[NewRun], plan: Plan | None = None, audit: AuditEntry | None = None
    ) -> Reply[Decision]:
        return await super().put([], plan, audit)


class Deaf(Watched):
    def changes(self, worker: str | None = None) -> AbstractAsyncContextManager[AsyncIterator[Hint]]:
        raise OSError("no hints today")


async def stories(seed: int) -> list[Sequence[NewRun]]:
    told: list[Sequence[NewRun]] = []

    def make() -> Backend:
        return Watched(told, Counter()).backend

    await search(make, seed, 10)
    return told


async def test_one_seed_tells_the_same_stories_again_and_another_seed_tells_others() -> None:
    first = await stories(1)
    assert len(first) > 20
    assert await stories(1) == first
    assert await stories(2) != first


@pytest.mark.parametrize(("store", "said"), [(Forgetful, "assert"), (Deaf, "no hints today")])
async def test_a_search_that_fails_closes_what_it_opened(store: type[Watched], said: str) -> None:
    opened: Counter[str] = Counter()
    made: list[Watched] = []

    def make() -> Backend:
        made.append(store([], opened))
        return made[-1].backend

    with pytest.raises(Disagreement, match=said):
        await search(make, 1, 10)
    assert made
    assert not +opened


class Resurrecting(Watched):
    """Lets the settlement of a zombie through."""

    async def settle(self, settlements: Sequence[Settlement]) -> Reply[Verdict]:
        current = (
            replace(said, fence=run.fence, worker=run.worker or "") for said in settlements for run in self._of(said)
        )
        return await super().settle(list(current))

    def _of(self, said: Settlement) -> list[Run]:
        return [run for run in self._book.runs.values() if run.id == said.run]


async def test_a_story_that_went_wrong_is_told_again_with_few_steps() -> None:
    def make() -> Backend:
        return Resurrecting([], Counter()).backend

    with pytest.raises(Disagreement, match="settle") as found:
        await search(make, 1, 200)
    name, steps = re.findall(r"story '(.*)', steps \[([^]]*)\]", str(found.value))[0]
    assert len(steps.split(",")) < 10
    with pytest.raises(Disagreement):
        await play(make, name, [int(step) for step in steps.split(",")])


def test_searches_do_not_depend_on_earlier_runs_and_end_in_time() -> None:
    """Nothing is remembered on disk, and shrinking, which takes minutes, is left to the profile "shrink"."""
    current = settings.get_profile("rota")
    assert current.derandomize
    assert current.database is None
    assert Phase.shrink not in current.phases
    shrink = settings.get_profile("shrink")
    assert shrink.derandomize
    assert Phase.shrink in shrink.phases
    assert not settings.get_profile("soak").derandomize
