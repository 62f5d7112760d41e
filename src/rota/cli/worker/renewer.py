"""The renewer beside `rota worker`: one small process that renews the leases of all workers of this command."""

import asyncio
import logging
import os
import secrets
import socket
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from rota.app.app import Rota
from rota.app.core import core_of
from rota.cli.render.logs import Level
from rota.cli.worker.children import FIRST_PAUSE, LAST_PAUSE, ending
from rota.domain.backoff import Backoff
from rota.engine import renewer
from rota.engine.logs import LogForm
from rota.engine.slate import RenewerAt
from rota.stores.sqlite import SqliteBackend

log = logging.getLogger("rota")

CALLERS = 1024
"""The most workers that may connect before the renewer has accepted the first."""


Logs = tuple[LogForm, Level]
"""The form of the renewer's log lines, and the least level of them."""


def can_renew(app: Rota) -> bool:
    """Return whether a renewer can run: it needs a shared store with a URL, and Linux, where it can watch its
    workers."""
    linux = sys.platform == "linux" and hasattr(os, "pidfd_open") and hasattr(os, "memfd_create")
    return linux and store_url(app) is not None


def store_url(app: Rota) -> str | None:
    """Return the URL with its secrets, for a process that opens the same store; None if no other process can open
    it."""
    if isinstance(app.backend, SqliteBackend):
        return app.backend.url  # absolute, whatever folder the process starts in
    url = core_of(app).store_url
    return None if url is None or url.startswith("memory:") else url


def renewer_for(app: Rota, address: str | None) -> RenewerAt | None:
    url = store_url(app)
    return None if address is None or url is None else RenewerAt(address, url, core_of(app).opener)


@asynccontextmanager
async def renewing(logs: Logs | None, wait_for: asyncio.Event | None = None) -> AsyncGenerator[str | None]:
    """Keep a renewer running while this is open, and yield its address; a renewer that dies is replaced.

    `logs` is the form and level of its log lines; None means no renewer. It starts after `wait_for`; workers that
    connect earlier wait until then.
    """
    if logs is None:
        yield None
        return
    address = f"rota-renewer-{os.getpid()}-{secrets.token_hex(8)}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind("\0" + address)
        listener.listen(CALLERS)
        keeping = asyncio.create_task(_keep(listener, logs, wait_for), name="rota keeps its renewer")
        try:
            yield address
        finally:
            keeping.cancel()
            await asyncio.wait((keeping,))


async def _keep(listener: socket.socket, logs: Logs, wait_for: asyncio.Event | None) -> None:
    if wait_for is not None:
        await wait_for.wait()
    backoff = Backoff(FIRST_PAUSE, LAST_PAUSE)
    while True:
        try:
            ended = await _run(listener, logs)
        except OSError as error:
            ended = f"cannot be started ({error})"
        pause = backoff.pause()
        log.warning("the renewer %s; another starts in %.1f s", ended, pause)
        await asyncio.sleep(pause)


async def _run(listener: socket.socket, logs: Logs) -> str:
    """Run one renewer and return how it ended."""
    descriptor = listener.fileno()
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-I",
        renewer.__file__,
        str(descriptor),
        str(os.getpid()),
        *logs,
        pass_fds=(descriptor,),
        stdin=asyncio.subprocess.DEVNULL,
        start_new_session=True,  # Ctrl-C must not reach it while its workers still stop
    )
    log.debug("renewer started (pid=%d)", process.pid)
    try:
        return f"(pid {process.pid}) {ending(await process.wait())}"
    except asyncio.CancelledError:
        process.kill()
        await process.wait()
        raise
