"""`rota serve`: the HTTP API of an app, with its engine or without."""

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from rota.app.app import Rota
from rota.cli import OK
from rota.cli.options.parameters import Flag, Shared
from rota.cli.options.target import Target
from rota.cli.render.logs import LogFormat, LogLevel, Quiet, Verbose, chosen_level, log_to_stderr
from rota.cli.render.show import Show
from rota.cli.worker.event_loop import LoopKind, check_loop, run_on, stop_signals
from rota.errors import InvalidOptions, MissingExtra

Role = Literal["all", "web"]
LAST_PORT = 65535


def serve(
    *,
    host: Annotated[str, Parameter(help="The address to listen on; others than loopback need a token.")] = "127.0.0.1",
    port: Annotated[int, Parameter(help="The port to listen on; 0 takes a free one.")] = 8100,
    socket: Annotated[Path | None, Parameter(help="Listen on this Unix socket instead.")] = None,
    role: Annotated[Role, Parameter(help="all: serve and do the app's work; web: only serve.")] = "all",
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
    loop: Annotated[LoopKind, Parameter(help="The event loop; auto: uvloop if it is installed.")] = "auto",
    log_level: LogLevel = None,
    log_format: LogFormat = None,
    verbose: Verbose = False,
    quiet: Quiet = False,
    target: Shared[Target],
    show: Shared[Show],
) -> int:
    """Serve the HTTP API until a signal.

    Callers send `Authorization: Bearer TOKEN`. ROTA_TOKEN is the token of an admin, ROTA_TOKENS a file of tokens (see
    `rota token new`). Without either, a token for this start is printed.
    """
    app = target.app()
    try:
        from rota.web.proxies import networks
        from rota.web.server import Place, credentials
        from rota.web.tokens import Tokens
    except ImportError as error:
        raise MissingExtra(f'rota serve needs {error.name}: pip install "rota[web]"') from None
    if not 0 <= port <= LAST_PORT:
        raise InvalidOptions(f"--port {port}: from 0 to {LAST_PORT}")
    if auth_header is not None and not trusted_proxy:
        raise InvalidOptions("--auth-header needs --trusted-proxy: anybody could send the header")
    place = Place(host, port, socket, networks(trusted_proxy), auth_header)
    letting_in = credentials(place, Tokens.from_environment(), no_token, auth_header)
    check_loop(loop)
    log_to_stderr(app.settings, chosen_level(log_level, verbose, quiet), log_format)

    async def run() -> int:
        from rota.web import server

        with stop_signals() as stop:
            async for bound in server.serve(app, place, letting_in, allowed_host, role == "all", stop.asked):
                _say(show, app, Place(host, bound, socket).url, letting_in.shown)
        return OK

    return run_on(loop, run())


def _say(show: Show, app: Rota, url: str, token: str | None) -> None:
    show.note(f"serving {app.backend.url} at {url}")
    if token is not None:
        show.note(f"token for this start: {token}")
