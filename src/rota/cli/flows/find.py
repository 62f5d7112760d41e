"""The app's flows and steps, found by name."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Annotated

from cyclopts import Parameter

from rota.app.app import Rota
from rota.cli.options.names import unknown
from rota.cli.options.target import Target
from rota.client.client import Client
from rota.errors import UnknownTask
from rota.flow import Flow

FlowName = Annotated[str, Parameter(help="The flow's name.")]
StepName = Annotated[str, Parameter(help="The step's name.")]
PeriodName = Annotated[str | None, Parameter(help="Which, such as 2026-11-15; the one of now if none is named.")]


@asynccontextmanager
async def opened_app(target: Target) -> AsyncGenerator[tuple[Rota, Client], None]:
    """The app and its open client: flows are defined in code."""
    app = target.app()
    async with app.client() as client:
        yield app, client


def find_flow(app: Rota, name: str) -> Flow:
    if name not in app.flows:
        raise UnknownTask(unknown(name, app.flows, noun="flow"))
    return app.flows[name]


def find_step(flow: Flow, name: str) -> str:
    if name not in flow.steps:
        raise UnknownTask(unknown(name, flow.steps, f"flow {flow.name}", "step"))
    return name
