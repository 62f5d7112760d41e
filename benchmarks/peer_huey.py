"""Huey on SQLite, every write durable as rota's are. It has no bulk submit: many are a loop."""

import logging
from pathlib import Path
from typing import Any

from huey import SqliteHuey

from benchmarks.stamps import Stamps

THREADS = 4


class HueyPeer:
    def __init__(self, path: Path, stamps: Stamps) -> None:
        def noop(i: int) -> None:
            stamps.mark(i)

        self._huey: Any = SqliteHuey("bench", filename=str(path), fsync=True, results=False)
        self._noop = self._huey.task()(noop)
        self._consumer: Any = None

    async def submit(self, i: int) -> None:
        self._noop(i)

    async def submit_many(self, ids: range) -> None:
        for i in ids:
            self._noop(i)

    async def start(self) -> None:
        self._consumer = self._make_consumer()
        self._consumer.start()

    async def stop(self) -> None:
        if self._consumer is not None:
            self._consumer.stop(graceful=True)
        self._huey.storage.close()

    def work(self) -> None:
        self._make_consumer().run()

    def _make_consumer(self) -> Any:
        logging.disable(logging.INFO)
        return self._huey.create_consumer(workers=THREADS, worker_type="thread", check_worker_health=False)
