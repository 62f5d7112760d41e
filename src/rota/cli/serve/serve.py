"""`rota serve`: the HTTP API of an app, with its engine or without."""

import asyncio
import logging
import os
import socket as sockets
import sys
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter
from msgspec.structs import replace

from rota.app.app import Rota
from rota.app.core import core_of
from rota.cli import FAILED, OK
from rota.cli.options.parameters import Flag, Shared
from rota.cli.options.target import Target
from rota.cli.render.logs import LogFormat, LogLevel, Quiet, Verbose, chosen_level, log_options, log_to_stderr
from rota.cli.render.show import Show
from rota.cli.worker.children import Children, hold_tether
from rota.cli.worker.event_loop import LoopKind, check_loop, run_on, stop_signals
from rota.cli.worker.signs import signs_of_life
from rota.errors import InvalidOptions, MissingExtra

if TYPE_CHECKING:
    from rota.web.server import Place

Role = Literal["all", "worker", "scheduler", "web"]
NO_API = ("worker", "scheduler")
"""Roles that answer /health and /ready, and nothing else."""
MOST_PROCESSES = 64
LAST_PORT = 65535

log = logging.getLogger("rota")


def serve(
    *,
    host: Annotated[str, Parameter(help="The address to listen on; others than loopback need a token.")] = "127.0.0.1",
    port: Annotated[int, Parameter(help="The port to listen on; 0 takes a free one.")] = 8100,
    socket: Annotated[Path | None, Parameter(help="Listen on this Unix socket instead.")] = None,
    role: Annotated[
        Role,
        Parameter(
            help="all: serve and do the app's work; web: only serve; worker: only work; scheduler: only fire schedules "
            "and rescue runs. The last two answer /health and /ready."
        ),
    ] = "all",
    processes: Annotated[int, Parameter(help="So many processes on one port; one that dies is replaced.")] = 1,
    no_token: Annotated[bool, Flag, Parameter(help="Let everybody on this machine in as admin.")] = False,
    allowed_host: Annotated[
        tuple[str, ...], Flag, Parameter(help="A name by which browsers may reach the service; may be repeated.")
    ] = (),
    trusted_proxy: Annotated[
        tuple[str, ...],
        Flag,
        Parameter(help="A network whose X-Forwarded-* headers count: 10.0.0.0/8; may be repeated."),
    ] = (),
    auth_header: Annotated[
        str | None, Parameter(help="The header in which a trusted proxy says who calls; ROTA_TOKENS has the rights.")
    ] = None,
    namespace: Annotated[
        tuple[str, ...],
        Flag,
        Parameter(help="Serve this namespace of the same server too, at /ns/NAME; may be repeated."),
    ] = (),
    loop: Annotated[LoopKind, Parameter(help="The event loop; auto: uvloop if it is installed.")] = "auto",
    log_level: LogLevel = None,
    log_format: LogFormat = None,
    verbose: Verbose = False,
    quiet: Quiet = False,
    tethered: Annotated[bool, Flag, Parameter(show=False)] = False,
    target: Shared[Target],
    show: Shared[Show],
) -> int:
    """Serve the HTTP API and the control room until a signal.

    Browsers find the control room at the address. Callers of the API send `Authorization: Bearer TOKEN`. ROTA_TOKEN is
    the token of an admin, ROTA_TOKENS a file of tokens (see `rota token new`). Without either, a token for this start
    is printed.
    """
    app = target.app()
    try:
        from rota.web import server
        from rota.web.namespaces import check_name
        from rota.web.proxies import networks
        from rota.web.server import Credentials, Place, credentials, nobody
        from rota.web.tokens import Tokens
    except ImportError as error:
        raise MissingExtra(f'rota serve needs {error.name}: pip install "rota[web]"') from None
    if not 0 <= port <= LAST_PORT:
        raise InvalidOptions(f"--port {port}: from 0 to {LAST_PORT}")
    if not 1 <= processes <= MOST_PROCESSES:
        raise InvalidOptions(f"--processes {processes}: from 1 to {MOST_PROCESSES}")
    if auth_header is not None and not trusted_proxy:
        raise InvalidOptions("--auth-header needs --trusted-proxy: anybody could send the header")
    place = Place(host, port, socket, networks(trusted_proxy), auth_header)
    letting_in = (
        Credentials(nobody) if role in NO_API else credentials(place, Tokens.from_environment(), no_token, auth_header)
    )
    if namespace and role in NO_API:
        raise InvalidOptions(f"--namespace is for serving, and --role {role} serves no API")
    url = target.url or app.settings.url
    others = {name: Rota(url, namespace=check_name(name)) for name in namespace}
    check_loop(loop)
    level = chosen_level(log_level, verbose, quiet)
    log_to_stderr(app.settings, level, log_format, pid=tethered)
    if processes > 1:
        options = {"host": host, "role": role, "loop": loop, **log_options(level, log_format)}
        flags = [*(["--no-token"] if no_token else []), *(f"--allowed-host={name}" for name in allowed_host)]
        flags += [f"--trusted-proxy={each}" for each in trusted_proxy]
        flags += [f"--namespace={each}" for each in namespace]
        flags += [] if auth_header is None else [f"--auth-header={auth_header}"]
        return asyncio.run(_serve_in_many(target, app, place, processes, letting_in.shown, flags, options, show))
    core_of(app).calls = role != "scheduler"

    async def run() -> int:
        with stop_signals() as stop:
            if tethered:
                hold_tether(stop)
            works = role != "web"
            async with AsyncExitStack() as opened:
                serving = server.serve(app, place, letting_in, allowed_host, works, stop.asked, tethered, others)
                async for bound in serving:
                    if works and core_of(app).lifecycle.running is not None:
                        stop.hurry = core_of(app).engine.hurry
                    if tethered:
                        log.info("process with pid %d listens", os.getpid())
                    else:
                        _say(show, app, Place(host, bound, socket).url, letting_in.shown)
                    signs = signs_of_life(lambda: core_of(app).lifecycle.running, stop.asked, sends=not tethered)
                    await opened.enter_async_context(signs)
        return OK

    return run_on(loop, run())


async def _serve_in_many(
    target: Target,
    app: Rota,
    place: "Place",
    count: int,
    token: str | None,
    flags: Sequence[str],
    options: Mapping[str, object],
    show: Show,
) -> int:
    """Serve in `count` processes that listen on one port, until a signal. They share the token of this start."""
    if place.socket is not None or not hasattr(sockets, "SO_REUSEPORT"):
        raise InvalidOptions("--processes shares a port, not a socket of a file: leave out --socket")
    if app.backend.url.startswith("memory:"):
        raise InvalidOptions("memory:// is not shared by processes; name another store (--url, ROTA_URL)")
    if token is not None:
        os.environ["ROTA_TOKEN"] = token
    with sockets.socket(sockets.AF_INET6 if ":" in place.host else sockets.AF_INET) as reserved:
        reserved.setsockopt(sockets.SOL_SOCKET, sockets.SO_REUSEPORT, 1)
        try:
            reserved.bind((place.host, place.port))
        except OSError as error:
            raise InvalidOptions(f"cannot listen on {place.url}: {error.strerror or error}") from None
        port = int(reserved.getsockname()[1])
        command = [sys.executable, "-m", "rota", "serve", "--tethered", *flags]
        given = {"app": target.given, "url": target.url, "port": port, **options}
        command += [word for name, value in given.items() if value is not None for word in (f"--{name}", str(value))]
        with stop_signals() as stop:
            _say(show, app, replace(place, port=port).url, token)
            async with signs_of_life(lambda: None, stop.asked):
                return OK if await Children(command, count, False, stop).work() else FAILED


def _say(show: Show, app: Rota, url: str, token: str | None) -> None:
    show.note(f"serving {app.backend.url} at {url}")
    if token is not None:
        show.note(f"token for this start: {token}")
        if url.startswith("http"):
            show.note(f"control room: {url}/#token={token}")
