"""`rota mcp`: the command."""

import asyncio
import os
import sys
from collections.abc import Mapping
from typing import Annotated
from urllib.parse import urlencode

import msgspec
from cyclopts import Parameter

from rota.app.app import Rota
from rota.cli import OK
from rota.cli.mcp.protocol import LINE_LIMIT, Protocol, Send
from rota.cli.mcp.tools import READS, WRITES
from rota.cli.options.parameters import Flag, Shared
from rota.cli.options.target import Target
from rota.cli.options.user import who
from rota.client.service import Service
from rota.errors import MissingExtra, ServiceError


def mcp(
    *,
    write: Annotated[
        bool, Flag, Parameter(help="Also offer tools that submit, retry, cancel, pause and resume.")
    ] = False,
    target: Shared[Target],
) -> int:
    """Answer an assistant on standard input and output (Model Context Protocol).

    It can ask why something does not run, and read runs, tasks, schedules, workers and decisions. With ROTA_SERVER, a
    service answers, and the rights of ROTA_TOKEN hold. Without it the app does, and the assistant is a viewer, or an
    operator with --write. Secrets are masked.
    """
    server = os.environ.get("ROTA_SERVER")
    tools = [*READS, *(WRITES if write else ())]
    if server and target.url is None:
        send = over_http(Service(server, os.environ.get("ROTA_TOKEN")))
        asyncio.run(_serve(Protocol(tools, send)))
    else:
        app = target.app()

        async def here() -> None:
            async with app.client():
                await _serve(Protocol(tools, _within(app, write)))

        asyncio.run(here())
    return OK


def _within(app: Rota, write: bool) -> Send:
    """Return what asks the routes of the service in this process, as a principal with few rights."""
    try:
        from rota.cli.mcp.within import within
    except ImportError as error:
        raise MissingExtra(f'rota mcp needs {error.name}: pip install "rota[web]"') from None
    return within(app, f"mcp:{who()}", write)


def over_http(service: Service) -> Send:
    async def send(method: str, path: str, given: Mapping[str, object]) -> tuple[int, str]:
        target = path + (f"?{urlencode(given, doseq=True)}" if given and method == "GET" else "")
        try:
            answer = await service.call(method, target, None if method == "GET" else given)
        except ServiceError as error:
            return error.status or 503, msgspec.json.encode(error.fields or {"detail": str(error)}).decode()
        return answer.status, answer.body.decode(errors="replace")

    return send


async def _serve(protocol: Protocol) -> None:
    while line := await asyncio.to_thread(sys.stdin.buffer.readline, LINE_LIMIT + 2):
        if not line.strip():
            continue
        answer = await protocol.answer(line)
        if answer is not None:
            sys.stdout.buffer.write(answer)
            sys.stdout.buffer.flush()
