"""Group commit: items that callers add while a call is under way go into the next call together. An item that finds no
call under way is sent at once."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeVar, cast

from rota.errors import Unstorable
from rota.store import Reply

Q = TypeVar("Q")
A = TypeVar("A")
Waiting = tuple[Sequence[Q], asyncio.Future[Reply[A]]]


class GroupCommit(Generic[Q, A]):
    """Returns one answer per question, in order. The questions of one caller always go into the same call.

    `send` makes one call. A call has at most `most` questions, unless one caller alone has more. At most `under_way`
    calls are made at the same time. With `direct`, a question that finds no call under way is sent in the task of its
    caller, which saves a turn of the event loop; cancelling that caller cancels the call. After an error in `own`, the
    questions of each caller are sent again in a call of their own, so that only the caller at fault gets the error.
    """

    def __init__(
        self,
        send: Callable[[Sequence[Q]], Awaitable[Reply[A]]],
        most: int,
        under_way: int = 1,
        direct: bool = False,
        own: tuple[type[Exception], ...] = (Unstorable,),
    ) -> None:
        self._send = send
        self._most = most
        self._under_way = under_way
        self._direct = direct
        self._own = own
        self._sending_directly = False
        self._waiting: deque[Waiting[Q, A]] = deque()
        self._senders: set[asyncio.Task[None]] = set()

    async def add(self, questions: Sequence[Q]) -> Reply[A]:
        if self._direct and not self._senders and not self._sending_directly:
            self._sending_directly = True
            try:
                return await self._send(questions)
            finally:
                self._sending_directly = False
                self._go_on()
        answer: asyncio.Future[Reply[A]] = asyncio.get_running_loop().create_future()
        waiting: Waiting[Q, A] = (questions, answer)
        self._waiting.append(waiting)
        self._go_on()
        try:
            return await answer
        except asyncio.CancelledError:
            if waiting in self._waiting:
                self._waiting.remove(waiting)  # do not send the questions of a caller that gave up
            raise

    async def close(self) -> None:
        """Wait until all questions are answered."""
        while self._senders:
            await asyncio.wait(self._senders)

    def _go_on(self) -> None:
        if self._waiting and len(self._senders) + self._sending_directly < self._under_way:
            self._senders.add(asyncio.create_task(self._work()))

    async def _work(self) -> None:
        try:
            while self._waiting:
                taken = [self._waiting.popleft()]
                size = len(taken[0][0])
                while self._waiting and size + len(self._waiting[0][0]) <= self._most:
                    taken.append(self._waiting.popleft())
                    size += len(taken[-1][0])
                await self._answer(taken)
        finally:
            # Discard this sender now, not in a callback when the task is done. A caller that got its answer can add a
            # question before such a callback runs, and the question would wait for a sender that has already left.
            self._senders.discard(cast("asyncio.Task[None]", asyncio.current_task()))
            self._go_on()

    async def _answer(self, taken: Sequence[Waiting[Q, A]]) -> None:
        try:
            reply = await self._send([question for questions, _ in taken for question in questions])
        except BaseException as error:
            if isinstance(error, self._own) and len(taken) > 1:
                for waiting in taken:
                    await self._answer([waiting])
                return
            for _, answer in taken:
                if not answer.done():
                    answer.set_exception(error) if isinstance(error, Exception) else answer.cancel()
            if not isinstance(error, Exception):
                raise
            return
        place = 0
        for questions, answer in taken:
            if not answer.done():
                answer.set_result(Reply(reply.now, reply.items[place : place + len(questions)]))
            place += len(questions)
