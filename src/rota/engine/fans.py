"""Fans: put the children of a list, and prepare the call of a gather."""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence, Sized
from contextvars import ContextVar
from typing import Any

from rota.domain.fan import CHUNK, MOST, Fan, Gathers, Spreads, child_id
from rota.domain.run import NewRun, Run, State
from rota.engine.context import Context
from rota.engine.gathered import Results, attach, wait_for
from rota.errors import Refused, StoreError
from rota.store import Command, RowQuery, RunQuery, Store

ChildrenOf = Callable[[Run, Spreads, Sequence[Any], int], Sequence[NewRun]]
"""Makes the children of a run for some items of its list; the number is the index of the first one."""


class FanStopped(Exception):
    """More children have ended without success than `failures=` allows."""


class Unspread(Exception):
    """The store did not take the children of a run. That is never the fault of the code that yields them."""


class Spread:
    """The children that one call makes of its items: CHUNK of them are put while the handler yields the next ones.

    If the run is called again, its children have the same ids, so that each is made once. If their number is known
    already, all of them were put before. If their gather has ended, nobody needs more of them.
    """

    def __init__(self, store: Store, children_of: ChildrenOf, context: Context, spreads: Spreads) -> None:
        self._store = store
        self._children_of = children_of
        self._context = context
        self._run = context.run
        self._spreads = spreads
        self._items: list[Any] = []
        self._put = 0
        self._loop = asyncio.get_running_loop()

    def take(self, item: object) -> bool:
        """Take one more item. Return whether it is time to put children."""
        if self._put + len(self._items) >= MOST:
            raise ValueError(f"{self._run.task} gives more than {MOST:,} items; a fan-out has at most {MOST:,}")
        self._items.append(item)
        return len(self._items) >= CHUNK

    def put_sync(self) -> None:
        """Put the children of the items taken so far, for a handler that is a plain function. Nothing else could stop
        a thread that yields on although its run has ended."""
        if self._context.stopping:
            raise Unspread("it was asked to stop")
        wait_for(self.put(), self._loop, "a plain function that yields needs a thread: leave out executor='loop'")

    async def put(self) -> None:
        """Put the children of the items taken so far."""
        children = self._children_of(self._run, self._spreads, self._items, self._put)
        self._put, self._items = self._put + len(self._items), []
        try:
            if children and await self._is_open():
                for decision in (await self._store.put(children)).items:
                    if not decision:
                        raise Refused(decision)
        except StoreError as error:
            raise Unspread(str(error)) from error

    async def end(self) -> int:
        """Put the last children, then say how many there are, and return that number."""
        await self.put()
        try:
            if await self._is_open():
                await self._store.fan(self._spreads.fan, self._put)
        except StoreError as error:
            raise Unspread(str(error)) from error
        return self._put

    async def _is_open(self) -> bool:
        """Return whether the gather waits for more children: it has not ended, and their number is not known."""
        found = (await self._store.rows(Fan, RowQuery(names=[self._spreads.fan]))).items
        return bool(found) and found[0].total is None


spread_here: ContextVar[Spread | None] = ContextVar("rota spread", default=None)
"""The children that the call in this context makes of what it yields; None: what it yields becomes a list."""


class Fans:
    def __init__(self, store: Store, children_of: ChildrenOf) -> None:
        self._store = store
        self._children_of = children_of

    def begin(self, context: Context, spreads: Spreads) -> Spread:
        return Spread(self._store, self._children_of, context, spreads)

    async def spread(self, context: Context, spreads: Spreads, result: object) -> int:
        """Put a child for each item of `result`, and return how many there are."""
        if isinstance(result, Spread):
            return await result.end()
        spread = self.begin(context, spreads)
        for item in items_of(context.run.task, result):
            if spread.take(item):
                await spread.put()
        return await spread.end()

    async def gathered(self, gathers: Gathers) -> dict[str, Any]:
        """Return the stored form of the `Results` of a gather. Raise FanStopped if too many children have failed; the
        others are cancelled then."""
        fan = await self._fan(gathers.fan) or await self._recount(gathers.fan)
        if fan.stopped:
            words = await self._stop(fan)
            more = f"of {fan.total:,} " if fan.total is not None else ""
            raise FanStopped(f"{fan.failed:,} {more}runs ended without success, {fan.allowed:,} may: {words}")
        return {"fan": fan.id, "total": fan.total or 0, "failed": fan.failed}

    def attach(self, arguments: Iterable[object]) -> None:
        """Let the `Results` among the arguments of a call read from the store."""
        for value in arguments:
            if isinstance(value, Results):
                attach(value, self._read)  # pyright: ignore[reportUnknownArgumentType]

    async def _fan(self, id: str) -> Fan | None:
        return next(iter((await self._store.rows(Fan, RowQuery(names=[id]))).items), None)

    async def _recount(self, id: str) -> Fan:
        """Count the children of a fan that the store has forgotten: this is the retry of a gather that has ended."""
        total = failed = 0
        for first in range(0, MOST, CHUNK):
            found = await self._read([child_id(id, index) for index in range(first, first + CHUNK)])
            if not found:
                break
            total = 1 + max(index for index in range(first, first + CHUNK) if child_id(id, index) in found)
            failed += sum(run.state is not State.SUCCEEDED for run in found.values())
        if not total:
            raise FanStopped(f"the results of {id} are forgotten; submit the whole chain again")
        return Fan(id, total, failed=failed)

    async def _read(self, ids: list[str]) -> dict[str, Run]:
        return {run.id: run for run in (await self._store.runs(RunQuery(ids=ids, limit=len(ids)))).runs}

    async def _stop(self, fan: Fan) -> str:
        """Cancel the children that have not ended, and return what the first failed child died of."""
        words = ""
        for first in range(0, MOST if fan.total is None else fan.total, CHUNK):
            found = await self._read([child_id(fan.id, index) for index in range(first, first + CHUNK)])
            words = words or _first_failure(found)
            left = [run.id for run in found.values() if not run.state.final]
            if left:
                await self._store.control(Command.CANCEL, left, "too many others have failed")
            if not found:
                break
        return words


def items_of(task: str, result: object) -> Iterable[Any]:
    """Return the items that a task gives to a fan; raise TypeError or ValueError if they cannot be given."""
    kind = type(result).__name__
    if isinstance(result, str | bytes | Mapping) or not isinstance(result, Iterable):
        raise TypeError(f"{task} returned {kind}; the task before each() returns a list, or yields")
    if isinstance(result, Sized) and len(result) > MOST:
        raise ValueError(f"{task} returned {len(result):,} items; a fan-out has at most {MOST:,}")
    return result  # pyright: ignore[reportUnknownVariableType]


def _first_failure(found: Mapping[str, Run]) -> str:
    failed = [run for run in found.values() if run.state in (State.FAILED, State.CANCELLED)]
    if not failed:
        return ""
    return f"{failed[0].task} {failed[0].id} {failed[0].state}" + (f" ({failed[0].error})" if failed[0].error else "")
