"""Group commit: what is asked while calls are under way goes with the next one. A lone question leaves at once."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeVar

from rota.errors import StoreCorrupt, Unstorable
from rota.store import Reply

Q = TypeVar("Q")
A = TypeVar("A")

MOST = 2000
"""At most so many questions share a call, unless one batch alone has more."""
UNDER_WAY = 2
"""Calls of one kind at a time: while one waits for the disk, another can be worked on."""


class Group(Generic[Q, A]):
    def __init__(self, send: Callable[[list[Q]], Awaitable[Reply[A]]]) -> None:
        self._send = send
        self._waiting: list[tuple[Sequence[Q], asyncio.Future[Reply[A]]]] = []
        self._senders: set[asyncio.Task[None]] = set()

    async def add(self, questions: Sequence[Q]) -> Reply[A]:
        answer: asyncio.Future[Reply[A]] = asyncio.get_running_loop().create_future()
        self._waiting.append((questions, answer))
        if len(self._senders) < UNDER_WAY:
            sender = asyncio.create_task(self._work())
            self._senders.add(sender)
            sender.add_done_callback(self._senders.discard)
        try:
            return await answer
        except asyncio.CancelledError:  # whoever gave up is not sent any more, unless it is under way
            self._waiting = [waiting for waiting in self._waiting if waiting[1] is not answer]
            raise

    async def close(self) -> None:
        """What was asked is still answered."""
        await asyncio.gather(*self._senders, return_exceptions=True)

    async def _work(self) -> None:
        while self._waiting:
            taken, count = [self._waiting.pop(0)], len(self._waiting)
            size = len(taken[0][0])
            while count and size + len(self._waiting[0][0]) <= MOST:
                taken.append(self._waiting.pop(0))
                size, count = size + len(taken[-1][0]), count - 1
            await self._answer(taken)

    async def _answer(self, taken: list[tuple[Sequence[Q], "asyncio.Future[Reply[A]]"]]) -> None:
        try:
            reply = await self._send([question for questions, _ in taken for question in questions])
        except (Unstorable, StoreCorrupt) as error:
            if len(taken) == 1:
                self._fail(taken, error)
            for one in taken if len(taken) > 1 else ():
                await self._answer([one])  # a bad value, or a bad row that one of them met, fails its own batch only
            return
        except BaseException as error:
            self._fail(taken, error)
            if not isinstance(error, Exception):
                raise
            return
        place = 0
        for questions, answer in taken:
            if not answer.done():
                answer.set_result(Reply(reply.now, reply.items[place : place + len(questions)]))
            place += len(questions)

    def _fail(self, taken: list[tuple[Sequence[Q], "asyncio.Future[Reply[A]]"]], error: BaseException) -> None:
        for _, answer in taken:
            if not answer.done():
                answer.set_exception(error)
