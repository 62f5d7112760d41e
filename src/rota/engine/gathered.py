"""Results: what a gather gets, the results of all children of a fan, read page by page."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextvars import ContextVar
from typing import Any, Generic, TypeVar, get_args

from msgspec import Struct

from rota.domain.arguments import decode_as
from rota.domain.decision import Reason
from rota.domain.failure import Failure
from rota.domain.fan import CHUNK, child_id
from rota.domain.run import Run, State
from rota.errors import UsageError

T_co = TypeVar("T_co", covariant=True)
V = TypeVar("V")
Read = Callable[[list[str]], Coroutine[Any, Any, dict[str, Run]]]
"""Returns those of the runs with these ids that the store has."""
Placed = tuple[int, Run | None]
"""The index of a child and its run, if the store has it."""
FOR = "the gather is async: write `async for result in results`, not `for`; the same for `results.failed`"
in_virtual_time: ContextVar[bool] = ContextVar("rota virtual time", default=False)
"""A plain function is called in a simulation: on the event loop, with a store that answers at once."""


def wait_for(work: Coroutine[Any, Any, V], loop: asyncio.AbstractEventLoop | None, mistake: str) -> V:
    """Return what `work` returns, in the thread of a handler. Nobody can wait on the event loop, also not for a store
    that answers at once: `mistake` says what to write instead."""
    if in_virtual_time.get():
        try:
            work.send(None)
        except StopIteration as answer:
            found: V = answer.value
            return found
    elif loop is not None and not _on_loop():
        return asyncio.run_coroutine_threadsafe(work, loop).result()
    work.close()
    raise UsageError(mistake)


def _on_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


class FailedChild(Struct, frozen=True):
    """A child of a fan that has no result: it failed, was cancelled, has expired or was deleted."""

    index: int
    id: str
    state: State | None
    reason: Reason | None = None
    error: Failure | None = None


class Children:
    """The children of a fan, in the order of their indexes. One page of them is in memory at a time."""

    def __init__(self, fan: str, total: int) -> None:
        self.fan = fan
        self.total = total
        self._read: Read | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    def attach(self, read: Read) -> None:
        """Let the children be read with `read`, on the event loop that runs here."""
        self._read, self._loop = read, asyncio.get_running_loop()

    def walk(self) -> Iterator[Placed]:
        for first in range(0, self.total, CHUNK):
            yield from self._placed(first, wait_for(self._page(first), self._loop, FOR))

    def check_thread(self) -> None:
        """Raise UsageError where `walk` cannot wait, also if there is nothing to wait for."""
        if _on_loop() and not in_virtual_time.get():
            raise UsageError(FOR)

    async def walk_async(self) -> AsyncIterator[Placed]:
        for first in range(0, self.total, CHUNK):
            for placed in self._placed(first, await self._page(first)):
                yield placed

    def _placed(self, first: int, page: dict[str, Run]) -> Iterator[Placed]:
        return ((index, page.get(child_id(self.fan, index))) for index in self._indexes(first))

    def _indexes(self, first: int) -> range:
        return range(first, min(first + CHUNK, self.total))

    async def _page(self, first: int) -> dict[str, Run]:
        if self._read is None:
            raise UsageError("these results belong to no call: only the handler of a gather can read them")
        return await self._read([child_id(self.fan, index) for index in self._indexes(first)])


class Results(Generic[T_co]):
    """The results of a fan-out in the order of its items: `for result in results`, in async code `async for`.

    One page of them is in memory at a time. Children that have no result are left out; `failed` has them. `len` is the
    number of results, `total` the number of items.
    """

    def __init__(self, children: Children, failed: int, kind: Any = Any) -> None:
        self._children = children
        self._kind = kind
        self.total = children.total
        self.failed = FailedChildren(children, failed)
        """The children that have no result, in the order of the items. It is false if all have one."""

    @staticmethod
    def _of_stored(kind: Any, value: Any) -> "Results[Any]":
        """Return the results as the stored argument of a gather names them; `kind` is the annotation."""
        return Results(Children(value["fan"], value["total"]), value["failed"], *get_args(kind))

    def __len__(self) -> int:
        return self.total - len(self.failed)

    def __repr__(self) -> str:
        return f"<Results {len(self)} of {self.total}>"

    def __iter__(self) -> Iterator[T_co]:
        self._children.check_thread()
        return (self._decoded(run) for _, run in self._children.walk() if _has_result(run))

    async def __aiter__(self) -> AsyncIterator[T_co]:
        async for _, run in self._children.walk_async():
            if _has_result(run):
                yield self._decoded(run)

    def _decoded(self, run: Run | None) -> Any:
        encoded = None if run is None else run.result
        return decode_as(self._kind, b"null" if encoded is None else encoded)


def attach(results: Results[Any], read: Read) -> None:
    """Let `results` be read with `read`, on the event loop that runs here."""
    results._children.attach(read)  # pyright: ignore[reportPrivateUsage]


class FailedChildren:
    """The children of a fan that have no result: `for child in results.failed`, in async code `async for`."""

    def __init__(self, children: Children, count: int) -> None:
        self._children = children
        self._count = count

    def __len__(self) -> int:
        return self._count

    def __repr__(self) -> str:
        return f"<FailedChildren {self._count} of {self._children.total}>"

    def __iter__(self) -> Iterator[FailedChild]:
        self._children.check_thread()
        walked = self._children.walk() if self._count else iter(())
        return (self._failed(index, run) for index, run in walked if not _has_result(run))

    async def __aiter__(self) -> AsyncIterator[FailedChild]:
        if self._count:
            async for index, run in self._children.walk_async():
                if not _has_result(run):
                    yield self._failed(index, run)

    def _failed(self, index: int, run: Run | None) -> FailedChild:
        id = child_id(self._children.fan, index)
        return FailedChild(index, id, None) if run is None else FailedChild(index, id, run.state, run.reason, run.error)


def _has_result(run: Run | None) -> bool:
    return run is not None and run.state is State.SUCCEEDED
