"""Threads for plain functions. They are daemons: a hung handler must not keep a stopped process alive."""

import asyncio
import contextvars
import queue
import threading
from collections.abc import Callable
from typing import Any


class ThreadExecutor:
    """Reuses idle threads and starts one more when all are busy; the worker's seats bound their number."""

    def __init__(self, name: str = "rota", ends: Callable[[], object] | None = None) -> None:
        """`ends` is called in each thread that ends."""
        self._name = name
        self._ends = ends
        self._jobs: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._idle = 0
        self._threads = 0

    def call(self, fn: Callable[[], Any]) -> asyncio.Future[Any]:
        """Return the result as a future. Cancelling it abandons the call; the thread runs on."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Any] = loop.create_future()
        context = contextvars.copy_context()

        def job() -> None:
            try:
                result, error = context.run(fn), None
            except BaseException as raised:
                result, error = None, raised
            if not loop.is_closed():
                loop.call_soon_threadsafe(_resolve, future, result, error)

        with self._lock:
            if self._idle:
                self._idle -= 1
            else:
                self._threads += 1
                name = f"{self._name}-{self._threads}"
                threading.Thread(target=self._serve, name=name, daemon=True).start()
        self._jobs.put(job)
        return future

    def close(self) -> None:
        """Idle threads end now, busy ones after their call."""
        for _ in range(self._threads):
            self._jobs.put(None)

    def _serve(self) -> None:
        while (job := self._jobs.get()) is not None:
            job()
            del job
            with self._lock:
                self._idle += 1
        if self._ends is not None:
            self._ends()


def _resolve(future: asyncio.Future[Any], result: Any, error: BaseException | None) -> None:
    if future.done():
        return
    if error is None:
        future.set_result(result)
    elif isinstance(error, StopIteration):  # a future refuses to carry it
        future.set_exception(RuntimeError(f"the handler raised StopIteration: {error.value!r}"))
    else:
        future.set_exception(error)
