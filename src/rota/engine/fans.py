"""Fans: put the children of a list, and prepare the call of a gather."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from rota.domain.fan import CHUNK, MOST, Fan, Gathers, Spreads, child_id
from rota.domain.run import NewRun, Run, State
from rota.engine.gathered import Results, attach
from rota.errors import Refused
from rota.store import Command, RowQuery, RunQuery, Store

ChildrenOf = Callable[[Run, Spreads, Sequence[Any], int], Sequence[NewRun]]
"""Makes the children of a run for some items of its list; the number is the index of the first one."""


class FanStopped(Exception):
    """More children have ended without success than `failures=` allows."""


class Fans:
    def __init__(self, store: Store, children_of: ChildrenOf) -> None:
        self._store = store
        self._children_of = children_of

    async def spread(self, run: Run, spreads: Spreads, result: object) -> int:
        """Put a child for each item of `result`, then say how many there are, and return that number.

        If the run is called again, its children have the same ids, so that each is made once. If the number is known
        already, all children were put.
        """
        items = items_of(run.task, result)
        fan = await self._fan(spreads.fan)
        if fan is None or fan.total is not None:  # None: the gather has ended
            return 0 if fan is None or fan.total is None else fan.total
        for first in range(0, len(items), CHUNK):
            children = self._children_of(run, spreads, items[first : first + CHUNK], first)
            for decision in (await self._store.put(children)).items:
                if not decision:
                    raise Refused(decision)
        await self._store.fan(spreads.fan, len(items))
        return len(items)

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


def items_of(task: str, result: object) -> list[Any]:
    """Return the items that a task gives to a fan; raise TypeError or ValueError if they cannot be given."""
    kind = type(result).__name__
    if isinstance(result, str | bytes | Mapping) or not isinstance(result, Iterable):
        raise TypeError(f"{task} returned {kind}; the task before each() returns a list, or yields")
    items: list[Any] = [*result]
    if len(items) > MOST:
        raise ValueError(f"{task} returned {len(items):,} items; a fan-out has at most {MOST:,}")
    return items


def _first_failure(found: Mapping[str, Run]) -> str:
    failed = [run for run in found.values() if run.state in (State.FAILED, State.CANCELLED)]
    if not failed:
        return ""
    return f"{failed[0].task} {failed[0].id} {failed[0].state}" + (f" ({failed[0].error})" if failed[0].error else "")
