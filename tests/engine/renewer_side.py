"""The renewer's side of a line, in the process of the test: what it knows of a worker, without its loop."""

import asyncio
import os
import secrets
import socket
import threading
import time
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager

from rota.domain.tuning import Tuning
from rota.engine import renewer
from rota.engine.slate import RenewerAt, RenewerConnection, Slate
from rota.store import Store
from rota.stores import connect


class Slow:
    """A store that opens when the test lets it."""

    asked = threading.Event()
    go = threading.Event()

    def __init__(self, url: str) -> None:
        self._backend = connect(url)

    @asynccontextmanager
    async def open(self) -> AsyncGenerator[Store]:
        self.asked.set()
        await asyncio.to_thread(self.go.wait)
        async with self._backend.open() as store:
            yield store


SLOW = "tests.engine.renewer_side:Slow"


@contextmanager
def listening() -> Generator[tuple[socket.socket, str]]:
    """A socket as a renewer has it, and its address."""
    address = f"rota-test-{os.getpid()}-{secrets.token_hex(8)}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind("\0" + address)
        listener.listen()
        yield listener, address


def met(listener: socket.socket) -> renewer.Client:
    """The next worker that calls, once it has said hello."""
    client = renewer.accept(listener)
    assert client is not None
    assert renewer.heard(client, client.line.fileno())
    return client


@asynccontextmanager
async def knowing(
    slate: Slate, url: str, tuning: Tuning, worker: str = "me", opener: str = "rota.stores:connect"
) -> AsyncGenerator[renewer.Client]:
    """A worker of that slate, as the renewer knows it; the worker's process is this one."""
    with listening() as (listener, address):
        line = RenewerConnection(RenewerAt(address, url, opener), slate, worker, tuning)
        line.start()
        client = await asyncio.to_thread(met, listener)
        try:
            yield client
        finally:
            line.stop()
            client.close()
            slate.close()


def use_the_processor() -> None:
    """Until /proc shows it, which counts in hundredths of a second."""
    end = time.process_time() + 0.03
    while time.process_time() < end:
        pass
