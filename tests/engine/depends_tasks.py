"""Handlers with dependencies, in a module that a child can import."""

import os
from collections.abc import AsyncIterator, Iterator
from typing import Any

from rota import CallArgument, Depends, Rota

app = Rota("memory://", concurrency=1)


def shared() -> Iterator[int]:
    yield id(object())


def own(number: int = CallArgument()) -> str:
    return f"connection {number}"


async def async_own(number: int = CallArgument()) -> AsyncIterator[str]:
    yield f"async {number}"


@app.task(executor="process")
def plain(number: int, own: str = Depends(own), shared: int = Depends(shared, shared=True)) -> dict[str, Any]:
    return {"own": own, "shared": shared, "pid": os.getpid()}


@app.task(executor="process")
async def on_loop(
    number: int, own: str = Depends(async_own), one: int = Depends(shared, shared=True)
) -> dict[str, Any]:
    return {"own": own, "shared": one, "pid": os.getpid()}


def refused(number: int, own: str = Depends(async_own)) -> None: ...
