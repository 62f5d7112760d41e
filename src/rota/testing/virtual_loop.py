"""An event loop in virtual time: when nothing is ready, its time jumps to the next timer."""

import asyncio
import selectors
import threading
from collections.abc import Callable, Mapping
from contextvars import Context, ContextVar
from typing import Any, NoReturn, TypeVarTuple

from rota.errors import NotSimulated

Ts = TypeVarTuple("Ts")
STANDSTILL = 500_000
"""The number of turns of the loop at one instant after which the simulation gives up."""
doing: ContextVar[str] = ContextVar("what is being simulated", default="the simulation")
"""Whose code runs now, in words for errors."""
owner: ContextVar[str | None] = ContextVar("the simulated worker that this belongs to", default=None)


class OwnedTask(asyncio.Task[Any]):
    """A task that knows which worker it belongs to."""

    owner: str | None = None


class VirtualLoop(asyncio.SelectorEventLoop):
    """Code that waits for the real world raises NotSimulated. Callbacks of a worker that was cut off do not run."""

    def __init__(self) -> None:
        self._leaps = _Leaps()
        self._thread = threading.get_ident()
        self._cut_off: set[str] = set()
        self.alarm: Callable[[Exception], None] = lambda error: None
        """Called with the error if code waits for the real world."""
        self.thread_answered: Callable[[], None] = lambda: None
        super().__init__(self._leaps)
        self._leaps.refuse = lambda: self._refuse("a socket, a pipe or the like")
        self._leaps.standstill = lambda: self.alarm(
            NotSimulated("time stands still: does a task submit itself again and again without any delay?")
        )
        self.set_task_factory(_owned)

    def time(self) -> float:
        return self._leaps.now

    @property
    def leaps(self) -> int:
        """How often time has moved."""
        return self._leaps.count

    def cut_off(self, name: str) -> set[asyncio.Task[Any]]:
        """Run nothing of this worker any more, not even its clean-up, while the caller keeps the returned tasks."""
        self._cut_off.add(name)
        return self.stranded()

    def stranded(self) -> set[asyncio.Task[Any]]:
        """Return the tasks of workers that were cut off."""
        tasks = asyncio.all_tasks(self)
        return {task for task in tasks if isinstance(task, OwnedTask) and task.owner in self._cut_off}

    # -- what is scheduled -----------------------------------------------------------------------------------------

    def call_soon(
        self, callback: Callable[[*Ts], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.Handle:
        if self.is_closed():  # Python closes a coroutine that outlived the simulation, and its clean-up calls here
            return asyncio.Handle(callback, args, self, context)
        name = owner.get() if context is None else context.get(owner)
        if name is None:
            return super().call_soon(callback, *args, context=context)
        return super().call_soon(self._unless_cut_off, name, callback, *args, context=context)

    def call_at(
        self, when: float, callback: Callable[[*Ts], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.TimerHandle:
        name = owner.get() if context is None else context.get(owner)
        if name is None:
            return super().call_at(when, callback, *args, context=context)
        return super().call_at(when, self._unless_cut_off, name, callback, *args, context=context)

    def call_soon_threadsafe(
        self, callback: Callable[[*Ts], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.Handle:
        """Run the callback even if its sender is cut off: a message that was sent arrives."""
        if threading.get_ident() == self._thread:
            return super().call_soon(callback, *args, context=context)
        super().call_soon_threadsafe(self.thread_answered)
        return super().call_soon_threadsafe(callback, *args, context=context)

    def _unless_cut_off(self, name: str, callback: Callable[[*Ts], object], *args: *Ts) -> None:
        if name not in self._cut_off:
            callback(*args)

    # -- what would have to wait for the real world ----------------------------------------------------------------

    def run_in_executor(self, executor: object, func: object, *args: object) -> NoReturn:
        self._refuse("a thread")

    async def getaddrinfo(self, *_: object, **__: object) -> NoReturn:
        self._refuse("the network")

    async def getnameinfo(self, *_: object, **__: object) -> NoReturn:
        self._refuse("the network")

    async def sock_connect(self, sock: object, address: object) -> NoReturn:
        self._refuse("the network")

    async def subprocess_exec(self, *_: object, **__: object) -> NoReturn:
        self._refuse("a subprocess")

    async def subprocess_shell(self, *_: object, **__: object) -> NoReturn:
        self._refuse("a subprocess")

    def _refuse(self, what: str) -> NoReturn:
        error = NotSimulated(
            f"{doing.get()} waits for {what}: real waiting has no place in virtual time; "
            "give it a stand-in that answers at once or after `asyncio.sleep`"
        )
        self.alarm(error)
        raise error


class _Leaps(selectors.BaseSelector):
    """A selector that moves the time instead of waiting for sockets."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.count = 0
        self.refuse: Callable[[], None] = lambda: None
        self.standstill: Callable[[], None] = lambda: None
        self._still = 0
        self._keys: dict[Any, selectors.SelectorKey] = {}

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            raise NotSimulated("nothing is left that could ever happen in this simulation")
        if timeout > 0:
            self.now += timeout
            self.count += 1
            self._still = 0
        self._still += 1
        if self._still > STANDSTILL:
            self._still = 0
            self.standstill()
        return []

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        self.refuse()
        key = selectors.SelectorKey(fileobj, fileobj if isinstance(fileobj, int) else fileobj.fileno(), events, data)
        self._keys[fileobj] = key
        return key

    def unregister(self, fileobj: Any) -> selectors.SelectorKey:
        return self._keys.pop(fileobj)

    def get_map(self) -> Mapping[Any, selectors.SelectorKey]:
        return self._keys


def _owned(loop: asyncio.AbstractEventLoop, coro: Any, **options: Any) -> OwnedTask:
    context: Context | None = options.get("context")
    task = OwnedTask(coro, loop=loop, **options)
    task.owner = owner.get() if context is None else context.get(owner)
    return task
