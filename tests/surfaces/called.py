"""The command `rota` called in this process."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import pytest

from rota import Retry, Rota
from rota.cli import run as command
from rota.domain.intake import Options, new_run
from rota.domain.policy import Policy
from rota.domain.run import NewRun
from rota.store import Store

T = TypeVar("T")


class Called:
    """`rota` in this process, on a store of its own and without an app."""

    def __init__(self, url: str, capsys: pytest.CaptureFixture[str]) -> None:
        self.url = url
        self._capsys = capsys
        self.err = ""

    def __call__(self, *arguments: str, code: int = 0) -> str:
        assert command([*arguments, "--url", self.url]) == code
        out, self.err = self._capsys.readouterr()
        return out

    def json(self, *arguments: str, code: int = 0) -> Any:
        return json.loads(self(*arguments, "--json", code=code))

    def put(self, *runs: NewRun) -> None:
        self.store(lambda store: store.put(runs))

    def store(self, use: Callable[[Store], Awaitable[T]], skew: float = 0.0) -> T:
        """One use of the store, whose clock may be ahead or behind."""

        async def opened() -> T:
            app = Rota(self.url)
            app.backend.skew = skew
            try:
                return await use(await app.client().store())
            finally:
                await app.stop()

        return asyncio.run(opened())

    def work(self, message: str = "no") -> tuple[str, str]:
        """One run that succeeded and one that failed after a retry."""
        app = Rota(self.url)

        @app.task
        async def greet(name: str) -> str:
            return f"hello {name}"

        @app.task(retry=Retry(1, delay=0.0))
        async def trip() -> None:
            raise ValueError(message)

        async def work() -> tuple[str, str]:
            async with app:
                good, bad = await greet.submit("Ada"), await trip.submit()
                for handle in (good, bad):
                    await app.client().ended(handle.id, 30)
            return good.id, bad.id

        return asyncio.run(work())


def waiting(id: str, task: str = "greet") -> NewRun:
    return new_run(id, task, b"{}", Policy(), Options())
