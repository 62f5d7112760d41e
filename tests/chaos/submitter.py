"""One submitter: it submits runs of every kind until SIGTERM, and writes what it asked for and what was answered.

python -m tests.chaos.submitter SEED
"""

import asyncio
import random
import signal
import sys
import uuid
from collections.abc import Awaitable, Callable
from typing import Any

from rota import StoreUnavailable
from rota.client.handle import RunHandle
from rota.domain.decision import Reason
from tests.chaos import history, tasks

KEYS = 8
PUSH = 0.3
"""Seconds by which each submit of a key pushes its waiting run."""
AT_ONCE = 4
PACE = 0.03
"""Seconds between the submits of one of the `AT_ONCE` senders, at random up to twice as many."""
REMEMBERED = 50


class Submitter:
    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._stopped = asyncio.Event()
        self._recent: list[str] = []

    async def work(self) -> None:
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, self._stopped.set)
        print("submitter is ready", flush=True)
        async with asyncio.TaskGroup() as senders:
            for _ in range(AT_ONCE):
                senders.create_task(self._send())
        await tasks.app.stop()

    async def _send(self) -> None:
        kinds = [self.simple, self.flaky, self.keyed, self.keyed, self.push, self.chain, self.cancel, self.many]
        while not self._stopped.is_set():
            await self._attempt(self._random.choice(kinds))
            await asyncio.sleep(self._random.uniform(0, 2 * PACE))

    async def _attempt(self, kind: Callable[[], Awaitable[None]]) -> None:
        """A store that is away is no fault of rota. Any other error is."""
        try:
            await kind()
        except StoreUnavailable as error:
            history.write("given up", kind=kind.__name__, error=str(error))
        except Exception as error:
            history.write("raw error", kind=kind.__name__, error=f"{type(error).__name__}: {error}")

    async def simple(self) -> None:
        task = self._random.choice([tasks.plain, tasks.threaded, tasks.isolated, tasks.single])
        token = self._token()
        with_delay = task.using(delay=self._random.choice([0, 0, 0.2]), priority=self._random.choice([0, 5]))
        self._acknowledge(task.name, token, await with_delay.submit(token))

    async def flaky(self) -> None:
        token, fails = self._token(), self._random.randint(0, (tasks.RETRY.limit or 0) + 1)
        self._acknowledge("flaky", token, await tasks.flaky.submit(token, fails), fails=fails)

    async def keyed(self) -> None:
        task = self._random.choice([tasks.limited, tasks.lonely, tasks.saver])
        token = self._token()
        handle = await self._unless_refused(task.submit(token, self._key()))
        if handle is not None:
            self._acknowledge(task.name, token, handle)

    async def push(self) -> None:
        token, key = self._token(), self._key()
        history.write("push", token=token)
        handle = await tasks.pushed.using(delay=PUSH).submit(token, key)
        self._acknowledge("pushed", token, handle, delay=PUSH)

    async def chain(self) -> None:
        token = self._token()
        chain = await (tasks.first.bind(token) >> tasks.second >> tasks.third).submit()
        history.write("chain", token=token, steps=[handle.id for handle in chain.steps.values()])

    async def many(self) -> None:
        tokens = [self._token() for _ in range(self._random.randint(2, 20))]
        handles = await tasks.app.submit_many([tasks.plain.bind(token) for token in tokens])
        for token, handle in zip(tokens, handles, strict=True):
            self._acknowledge("plain", token, handle)

    async def cancel(self) -> None:
        if self._recent:
            id = self._random.choice(self._recent)
            history.write("cancel", run=id)
            await tasks.app.handle(id).cancel("chaos")

    async def _unless_refused(self, submit: Awaitable[RunHandle[Any]]) -> RunHandle[Any] | None:
        from rota import Refused

        try:
            return await submit
        except Refused as refused:
            if refused.reason is Reason.ALREADY_RUNNING:
                return None
            raise

    def _acknowledge(self, task: str, token: str, handle: RunHandle[Any], **more: object) -> None:
        history.write("acknowledged", task=task, token=token, run=handle.id, created=handle.created, **more)
        if task == "plain":
            self._recent = [*self._recent[-REMEMBERED:], handle.id]

    def _token(self) -> str:
        return uuid.uuid4().hex

    def _key(self) -> str:
        return f"k{self._random.randrange(KEYS)}"


if __name__ == "__main__":
    asyncio.run(Submitter(int(sys.argv[1])).work())
