"""The renewer beside `rota worker`: one small process that keeps the leases of all workers that this command runs."""

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
"""Workers that may call before the renewer has answered the first."""


OPENER = "rota.stores:connect"

Logs = tuple[LogForm, Level]
"""The form of the renewer's log lines, and the least level of them."""


def can_renew(app: Rota) -> bool:
    """A process of its own can only reach a store that is shared and has a URL; it judges its workers as Linux shows
    them."""
    linux = sys.platform == "linux" and hasattr(os, "pidfd_open") and hasattr(os, "memfd_create")
    return linux and store_url(app) is not None


def store_url(app: Rota) -> str | None:
    """With its secrets, for a process that opens the same store; None if there is no such thing."""
    if isinstance(app.backend, SqliteBackend):
        return app.backend.url  # wherever the process is started
    url = core_of(app).store_url
    return None if url is None or url.startswith("memory:") else url


def renewer_for(app: Rota, address: str | None) -> RenewerAt | None:
    url = store_url(app)
    return None if address is None or url is None else RenewerAt(address, url, OPENER)


@asynccontextmanager
async def renewing(logs: Logs | None, wait_for: asyncio.Event | None = None) -> AsyncGenerator[str | None]:
    """Where the renewer is to be called while this is open; another is started whenever one dies.

    `logs` is how it logs; None: none is wanted. It is started after `wait_for`; who calls before that is heard then.
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
    """One renewer, from its start to its end; how it ended."""
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
        start_new_session=True,  # Ctrl-C is not for it: its workers still stop
    )
    log.debug("renewer started (pid=%d)", process.pid)
    try:
        return f"(pid {process.pid}) {ending(await process.wait())}"
    except asyncio.CancelledError:
        process.kill()
        await process.wait()
        raise
