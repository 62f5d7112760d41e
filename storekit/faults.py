"""A backend that loses requests and replies on demand, for tests of what rota does then."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, Literal, cast

from rota.errors import StoreUnavailable
from rota.store import Backend, HandsOver, Hint, Store, SubmitsWithin

Fault = Literal["request lost", "reply lost"]


class FaultyBackend:
    """Opens the store of another backend and makes its verbs fail on demand, before or after they are executed.

    After `backend.fail("settle", "reply lost", times=2)` the next two settles are executed and then raise. With `mute`,
    no hint arrives.
    """

    def __init__(self, backend: Backend, mute: bool = False) -> None:
        self.mute = mute
        self._backend = backend
        self._faults: dict[str, list[Fault | BaseException | None]] = {}
        self.calls: list[str] = []

    @property
    def url(self) -> str:
        return self._backend.url

    @property
    def poll(self) -> float:
        return self._backend.poll

    @property
    def skew(self) -> float:
        return self._backend.skew

    @skew.setter
    def skew(self, seconds: float) -> None:
        self._backend.skew = seconds

    @property
    def submits_within(self) -> SubmitsWithin | None:
        return self._backend.submits_within

    def fail(self, verb: str, fault: Fault | BaseException, times: int = 1, after: int = 0) -> None:
        """Make the next `times` calls of `verb` fail, after the first `after` calls."""
        waiting = self._faults.setdefault(verb, [])
        waiting.extend([None] * after)
        for _ in range(times):
            waiting.append(fault)

    @asynccontextmanager
    async def open(self) -> AsyncGenerator[Store]:
        async with self._backend.open() as store:
            yield cast(Store, _FaultyStore(store, self))

    def heal(self) -> None:
        self._faults.clear()

    def next_fault(self, verb: str) -> Fault | BaseException | None:
        waiting = self._faults.get(verb)
        return waiting.pop(0) if waiting else None


class _FaultyStore:
    def __init__(self, store: Store, backend: FaultyBackend) -> None:
        self._store = store
        self._backend = backend
        self.hands_over: HandsOver | None = None
        if store.hands_over is not None:
            self.hands_over = cast(HandsOver, self)
            self.hears = store.hands_over.hears
            self.hints_on = store.hands_over.hints_on
            self.claim_ready = self._faulty("claim", store.hands_over.claim_ready)

    def __getattr__(self, verb: str) -> Any:
        real = getattr(self._store, verb)
        if verb == "changes":
            fault = self._backend.next_fault(verb)
            if isinstance(fault, BaseException):
                raise fault
            return _silence if self._backend.mute else real
        return self._faulty(verb, real)

    def _faulty(self, verb: str, real: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        async def call(*args: Any, **kwargs: Any) -> Any:
            self._backend.calls.append(verb)
            fault = self._backend.next_fault(verb)
            if isinstance(fault, BaseException):
                raise fault
            if fault == "request lost":
                raise StoreUnavailable(f"{verb}: the request was lost")
            answer = await real(*args, **kwargs)
            if fault == "reply lost":
                raise StoreUnavailable(f"{verb}: the reply was lost")
            return answer

        return call


@asynccontextmanager
async def _silence(worker: str | None = None) -> AsyncGenerator[AsyncIterator[Hint]]:
    yield _nothing()


async def _nothing() -> AsyncIterator[Hint]:
    await asyncio.Event().wait()
    yield Hint()
