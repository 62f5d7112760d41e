"""Hooks: `app.on("failed", notify)`. An exception in a hook is logged and has no other effect."""

import asyncio
import inspect
import logging
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, Literal, get_args

from rota.domain.decision import Decision
from rota.domain.event import Event
from rota.domain.run import NewRun, Run
from rota.domain.settlement import Settlement

log = logging.getLogger("rota")

EventName = Literal["started", "succeeded", "failed", "retried", "cancelled", "lost", "refused", "stuck", "late"]
AT_ONCE = 1000
EVENTS: tuple[str, ...] = get_args(EventName)
Hook = Callable[[Event], Any]
Observe = Callable[[Run, Settlement], None]


class Hooks:
    def __init__(self) -> None:
        self._hooks: dict[str, list[Hook]] = {}
        self._running: set[asyncio.Future[Any]] = set()
        self.observe: Observe | None = None
        """Hears of every call whose ending was recorded, at once and on the event loop of the engine: it has to be
        short."""

    def add(self, event: str, hook: Hook) -> None:
        if event not in EVENTS:
            raise ValueError(f"no event {event!r}; there are {', '.join(EVENTS)}")
        self._hooks.setdefault(event, []).append(hook)

    @property
    def empty(self) -> bool:
        return not self._hooks

    def wanted(self, event: str) -> bool:
        return event in self._hooks

    def adapted(self, adapt: Callable[[Hook], Hook]) -> "Hooks":
        """Return the same hooks, each wrapped by `adapt`."""
        others = Hooks()
        others._hooks = {event: [adapt(hook) for hook in hooks] for event, hooks in self._hooks.items()}
        return others

    def refused(self, run: NewRun, decision: Decision) -> None:
        """A submit was refused."""
        if self.wanted("refused"):
            self.emit(Event("refused", run.task, reason=str(decision.reason)))

    def emit(self, event: Event) -> None:
        for hook in self._hooks.get(event.name, ()):
            if len(self._running) >= AT_ONCE:
                log.warning("%d hooks are still running: a hook for %r is not called", AT_ONCE, event.name)
                continue
            self.later(_call(hook, event))

    def later(self, work: Coroutine[Any, Any, None]) -> None:
        """Run `work` in a task of its own; `drain` waits for it."""
        task = asyncio.ensure_future(work)
        self._running.add(task)
        task.add_done_callback(self._ended)

    async def drain(self, seconds: float) -> None:
        """Wait up to `seconds` for the hooks that still run, and for hooks that these cause."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                loop = asyncio.get_running_loop()  # hooks of submits from other threads run on other loops
                while here := [hook for hook in self._running if hook.get_loop() is loop]:
                    await asyncio.wait(here)

    def _ended(self, task: asyncio.Future[Any]) -> None:
        self._running.discard(task)
        if not task.cancelled() and task.exception() is not None:
            log.error("a hook failed", exc_info=task.exception())


async def _call(hook: Hook, event: Event) -> None:
    """An async hook on the loop, a plain one in a thread: it may block."""
    if inspect.iscoroutinefunction(hook):
        await hook(event)
    else:
        await asyncio.to_thread(hook, event)
