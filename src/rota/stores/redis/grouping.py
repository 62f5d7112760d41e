"""Group commit: what is asked while a request is on its way goes together in the next. A lone one leaves at once."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeVar

from rota.errors import Unstorable
from rota.store import Reply

Q = TypeVar("Q")
A = TypeVar("A")
MOST = 1000
"""Items after which a request takes no more callers in."""


class Grouped(Generic[Q, A]):
    """One answer for each question, in order; a call's own questions are never parted."""

    def __init__(self, send: Callable[[Sequence[Q]], Awaitable[Reply[A]]]) -> None:
        self._send = send
        self._busy = False
        self._waiting: deque[tuple[Sequence[Q], asyncio.Future[Reply[A]]]] = deque()
        self._carriers: set[asyncio.Task[None]] = set()

    async def add(self, questions: Sequence[Q]) -> Reply[A]:
        if self._busy:
            future: asyncio.Future[Reply[A]] = asyncio.get_running_loop().create_future()
            self._waiting.append((questions, future))
            return await future
        self._busy = True
        try:
            return await self._send(questions)
        finally:
            self._go_on()

    async def close(self) -> None:
        """What was asked for is still done."""
        while self._carriers:
            await asyncio.wait(self._carriers)

    def _go_on(self) -> None:
        group: list[tuple[Sequence[Q], asyncio.Future[Reply[A]]]] = []
        size = 0
        while self._waiting and (not group or size + len(self._waiting[0][0]) <= MOST):
            group.append(self._waiting.popleft())
            size += len(group[-1][0])
        self._busy = bool(group)
        if group:
            carrier = asyncio.create_task(self._carry(group))
            self._carriers.add(carrier)
            carrier.add_done_callback(self._carriers.discard)

    async def _carry(self, group: list[tuple[Sequence[Q], asyncio.Future[Reply[A]]]]) -> None:
        try:
            await self._answer(group)
        finally:
            self._go_on()

    async def _answer(self, group: Sequence[tuple[Sequence[Q], asyncio.Future[Reply[A]]]]) -> None:
        try:
            reply = await self._send([question for questions, _ in group for question in questions])
        except BaseException as error:
            if isinstance(error, Unstorable) and len(group) > 1:
                for one in group:
                    await self._answer([one])  # a value that cannot be stored fails its own caller only
                return
            for _, future in group:
                if not future.done():
                    future.set_exception(error) if isinstance(error, Exception) else future.cancel()
            if not isinstance(error, Exception):
                raise
            return
        at = 0
        for questions, future in group:
            if not future.done():
                future.set_result(Reply(reply.now, reply.items[at : at + len(questions)]))
            at += len(questions)
