"""Child processes for handlers that may crash, hang or hold the interpreter: one run per child at a time.

A child is a fresh interpreter: it takes 0.2 s to start, once, because idle children are reused (0.1 ms a call). A fork
server would take 0.03 s, but it is one more process that can die, and a child would not die with its real parent. A
child leads a process group of its own, so that killing it also kills what its handler started.
"""

import asyncio
import sys
from typing import Any

import msgspec
from msgspec.structs import replace

from rota.domain.run import Failure
from rota.engine.context import Context
from rota.engine.executors.child_process import DEATH, Child, ChildDied, ChildError, ChildTimeout
from rota.engine.executors.importable import check_importable, locate
from rota.engine.executors.messages import Answer, BadResult, Call, Cancelled, Raised, Returned, Unbindable
from rota.engine.executors.thread import ThreadExecutor
from rota.engine.handler import Handler

__all__ = [
    "ChildBadResult",
    "ChildDied",
    "ChildError",
    "ChildRaised",
    "ChildStopped",
    "ChildTimeout",
    "ChildUnbindable",
    "ProcessExecutor",
    "check_importable",
]

CALLS = 100
"""A child is replaced after this many calls: what its handlers leak ends with it."""
PATIENCE = 5.0
"""Seconds that a handler told to stop has before its child is killed."""
FAREWELL = 2.0
"""Seconds that idle children have to end by themselves when the executor is closed."""


class ChildBadResult(ChildError):
    """The handler did its work, but its result has no JSON form or is too large."""


class ChildUnbindable(ChildError):
    """The stored arguments do not fit the function that the child found."""


class ChildRaised(ChildError):
    """The handler raised. `kind_names` are the qualified names of the exception's classes, nearest first; `verdict`
    is the name and the arguments of one of rota's own that says what becomes of the run."""

    def __init__(
        self, failure: Failure, kind_names: tuple[str, ...] = (), verdict: tuple[str, list[Any]] | None = None
    ) -> None:
        super().__init__(str(failure))
        self.failure = failure
        self.kind_names = kind_names
        self.verdict = verdict


class ChildStopped(asyncio.CancelledError):
    """The call was cancelled, and its child has stopped. `ended`: by itself, it was not killed. `succeeded`: the
    handler returned `result` without having looked whether it should stop; its work is done."""

    def __init__(self, answer: Answer | None) -> None:
        super().__init__()
        self.ended = answer is not None
        self.succeeded = isinstance(answer, Returned) and not answer.noticed
        self.result = answer.result if isinstance(answer, Returned) else None


class ProcessExecutor:
    """Reuses idle children and starts one more when all are busy; the worker's seats bound their number."""

    def __init__(self) -> None:
        child = sys.modules.get("rota.engine.executors.child")
        if child is not None and child.serving:
            raise RuntimeError(
                "a worker cannot start inside the child process of another; is the code that starts yours under "
                '`if __name__ == "__main__":`?'
            )
        self._threads = ThreadExecutor("rota-child")
        self._children: set[Child] = set()
        self._idle: list[Child] = []
        self._closed = False

    @property
    def pids(self) -> list[int]:
        """The children that are alive, busy or not."""
        return [child.pid for child in self._children if not child.gone.done()]

    async def call(self, handler: Handler, context: Context, args: bytes, timeout: float | None) -> bytes | None:
        """Return the handler's JSON result, None for None. Raises a ChildError, or ChildStopped if the call is
        cancelled.

        `timeout` counts from the call of the handler, not from the start of its child.
        """
        if self._closed:
            raise ChildDied("no child process: the worker has stopped", called=False)
        module, name = locate(handler)
        order = Call(
            module,
            name,
            handler.takes_context,
            args,
            replace(context.run, args=b"", body=b""),
            context.period,
            context.tail is not None,
        )
        while True:
            child = await self._take()
            fresh = child.calls == 0
            try:
                return unpack(await child.call(order, context, timeout))
            except ChildDied as death:
                if fresh or death.called or self._closed:
                    raise
            except asyncio.CancelledError:
                raise ChildStopped(await child.stop(PATIENCE)) from None
            finally:
                self._give_back(child)

    async def close(self) -> None:
        """End all children: idle ones by themselves, busy ones at once."""
        self._closed = True
        for child in self._children:
            if child in self._idle:
                child.retire()
            else:
                child.dismiss()
        await self._all_over(FAREWELL)
        for child in self._children:
            child.kill()
        await self._all_over(DEATH)
        self._threads.close()

    async def _all_over(self, patience: float) -> None:
        if ends := [child.over for child in self._children]:
            await asyncio.wait(ends, timeout=patience)

    async def _take(self) -> Child:
        while self._idle:
            child = self._idle.pop()
            if not child.lost.done():
                return child
        child = await Child.start(self._threads)
        self._children.add(child)
        child.over.add_done_callback(lambda _: self._children.discard(child))
        if self._closed:
            child.dismiss()
        return child

    def _give_back(self, child: Child) -> None:
        if not child.answered:
            child.kill()
        elif child.calls >= CALLS or self._closed:
            child.retire()
        else:
            self._idle.append(child)


def unpack(answer: Answer) -> bytes | None:
    match answer:
        case Returned(result):
            return result
        case Raised(failure, kinds, verdict, words):
            raise ChildRaised(failure, kinds, None if verdict is None else (verdict, msgspec.json.decode(words)))
        case BadResult(message):
            raise ChildBadResult(message)
        case Unbindable(message):
            raise ChildUnbindable(message)
        case Cancelled():
            raise ChildStopped(answer)
