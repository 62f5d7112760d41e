"""`rota worker`: the app's engine in a process of its own."""

import asyncio
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from rota.app import Rota
from rota.cli.apps import Target
from rota.cli.groups import Shared
from rota.cli.logs import log_to_stderr
from rota.cli.show import Show
from rota.cli.signals import stop_signals
from rota.cli.text import plural
from rota.engine.tuning import Tuning
from rota.errors import InvalidOptions
from rota.store import Backend
from rota.stores.sqlite import SqliteBackend


def worker(
    *,
    concurrency: Annotated[int | None, Parameter(help="Runs at the same time.")] = None,
    lease: Annotated[float | None, Parameter(help="Seconds after which a dead worker's runs are taken.")] = None,
    grace: Annotated[float | None, Parameter(help="Seconds that running handlers get at the end.")] = None,
    target: Shared[Target],
    show: Shared[Show],
) -> None:
    """Do the work: claim and call runs until told to stop.

    Ctrl-C or SIGTERM stops it gracefully: it claims no more and lets running handlers end. A second one stops the wait.
    """
    app = target.app()
    if not app.tasks:
        raise InvalidOptions(f"{target.reference} has no tasks; define one with @app.task")
    app.tuning = _tuned(app.tuning, concurrency=concurrency, lease=lease, grace=grace)
    log_to_stderr()
    asyncio.run(work(app, show))


async def work(app: Rota, show: Show) -> None:
    """Until the first signal; the second one ends the grace."""
    with stop_signals() as stop:
        await app.start()
        engine = app.engine
        stop.hurry = engine.hurry
        try:
            show.line(
                f"rota worker: {plural(len(app.tasks), 'task')} on {place(app.backend)}; "
                f"{plural(app.tuning.concurrency, 'seat')}, Ctrl-C stops"
            )
            await stop.asked.wait()
        finally:
            await app.stop()


def place(backend: Backend) -> str:
    """A store's url, and for a file where that is."""
    if isinstance(backend, SqliteBackend):
        return f"{backend.url} ({Path(backend.path).resolve()})"
    return backend.url


def _tuned(tuning: Tuning, **given: float | None) -> Tuning:
    changes: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    try:
        return Tuning(**{f: getattr(tuning, f) for f in Tuning.__struct_fields__} | changes)
    except ValueError as error:
        raise InvalidOptions(str(error)) from None
