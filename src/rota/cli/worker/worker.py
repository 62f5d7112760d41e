"""`rota worker`: the app's engine in a process of its own, or in several."""

import asyncio
import logging
from collections.abc import Callable, Collection, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from rota.app.app import Rota
from rota.app.core import core_of
from rota.cli import OK, STOPPED, WORN
from rota.cli.options.names import check_known
from rota.cli.options.parameters import Flag, Shared
from rota.cli.options.sizes import bytes_of
from rota.cli.options.target import Target
from rota.cli.options.times import seconds_of
from rota.cli.render.logs import (
    LogFormat,
    LogLevel,
    Quiet,
    Verbose,
    chosen_level,
    has_banner,
    log_options,
    log_to_stderr,
)
from rota.cli.render.show import Show
from rota.cli.render.text import plural
from rota.cli.worker.children import Children, hold_tether, worker_command
from rota.cli.worker.event_loop import LoopKind, Stop, check_loop, first_of, run_on, stop_signals
from rota.cli.worker.renewer import Logs, can_renew, renewer_for, renewing
from rota.cli.worker.signs import check_file, signs_of_life
from rota.client.drain import drained
from rota.domain.tuning import Tuning
from rota.engine.wear import Wear
from rota.errors import InvalidOptions

log = logging.getLogger("rota")

MOST_PROCESSES = 256
LOOK_AGAIN = 0.2

Concurrency = Annotated[int | None, Parameter(help="Runs at the same time, in each process.")]
Lease = Annotated[
    str | None,
    Parameter(allow_leading_hyphen=True, help="Time after which a dead worker's runs are taken: seconds, or 30s, 5m."),
]
Grace = Annotated[
    str | None,
    Parameter(allow_leading_hyphen=True, help="Time that running handlers get at the end: seconds, or 30s, 5m."),
]
MaxRuns = Annotated[
    int | None, Parameter(help="Start so many runs, let them end, and exit with 75; --processes starts another.")
]
MaxMemory = Annotated[
    str | None, Parameter(help="The same when the process uses more memory than this, such as 500M or 2G.")
]
Tasks = Annotated[tuple[str, ...], Flag, Parameter(help="Only these tasks: a,b; may be repeated.")]
Queues = Annotated[tuple[str, ...], Flag, Parameter(help="Only runs of these queues: a,b; may be repeated.")]


def worker(
    *,
    concurrency: Concurrency = None,
    lease: Lease = None,
    grace: Grace = None,
    tasks: Tasks = (),
    queues: Queues = (),
    processes: Annotated[int, Parameter(help="So many processes; one that dies is replaced.")] = 1,
    burst: Annotated[bool, Flag, Parameter(help="End when nothing is due any more.")] = False,
    max_runs: MaxRuns = None,
    max_memory: MaxMemory = None,
    health_file: Annotated[
        Path | None, Parameter(help="Write signs of life here every 5 s, for `rota health file:PATH`.")
    ] = None,
    loop: Annotated[LoopKind, Parameter(help="The event loop; auto: uvloop if it is installed.")] = "auto",
    log_level: LogLevel = None,
    log_format: LogFormat = None,
    verbose: Verbose = False,
    quiet: Quiet = False,
    tethered: Annotated[bool, Flag, Parameter(show=False)] = False,
    crowded: Annotated[bool, Flag, Parameter(show=False)] = False,
    renewer: Annotated[str | None, Parameter(show=False)] = None,
    target: Shared[Target],
    show: Shared[Show],
) -> int:
    """Do the work: claim and call runs until a signal.

    Ctrl-C or SIGTERM stops it gracefully: it claims no more and lets running handlers end. A second one stops the wait.
    """
    spans = {"lease": seconds_of(lease, "--lease"), "grace": seconds_of(grace, "--grace")}
    app = checked_app(target, tasks, concurrency=concurrency, **spans, queues=tuple(split(queues)) or None)
    check_loop(loop)
    check_file(health_file, processes)
    core_of(app).wear = _wear(max_runs, max_memory)
    level = chosen_level(log_level, verbose, quiet)
    log_to_stderr(app.settings, level, log_format, pid=tethered and crowded)
    logs = (log_format or app.settings.log_format, level or app.settings.log_level)
    banner = show if has_banner(*logs) else None
    if processes == 1:
        core_of(app).renewer = renewer_for(app, renewer)
        return run_on(loop, work(app, banner, logs, split(tasks), burst, tethered, health_file))
    if not 1 <= processes <= MOST_PROCESSES:
        raise InvalidOptions(f"--processes {processes}: from 1 to {MOST_PROCESSES}")
    if app.backend.url.startswith("memory:"):
        raise InvalidOptions("memory:// is not shared by processes; name another store (--url, ROTA_URL)")
    only = {"tasks": ",".join(split(tasks)) or None, "queues": ",".join(split(queues)) or None}
    flags = ["--crowded", *(["--burst"] if burst else [])]
    bounds = {"max-runs": max_runs, "max-memory": max_memory}
    options = {"concurrency": concurrency, **spans, **only, "loop": loop, **bounds}
    command = worker_command(target, *flags, **options, **log_options(level, log_format))
    return asyncio.run(work_in_many(command, processes, burst, banner, logs if can_renew(app) else None))


def checked_app(target: Target, tasks: Sequence[str], **tuning: float | tuple[str, ...] | None) -> Rota:
    """Return the app with the options applied; raises if a worker cannot work for it."""
    app = target.app()
    if not app.tasks:
        raise InvalidOptions(f"{target.reference} has no tasks; define one with @app.task")
    if not app.settings.enabled:
        source = app.settings.source("enabled")
        raise InvalidOptions(
            f"the engine is switched off here (enabled=false from {source}), so this worker would do nothing; "
            "switch it on, or start the worker elsewhere"
        )
    check_known(split(tasks), core_of(app).registry.names())
    core_of(app).tuning = _tuned(core_of(app).tuning, **tuning)
    return app


def split(tasks: Sequence[str]) -> list[str]:
    """Return the names of repeated options and of `a,b` as one list."""
    return list(dict.fromkeys(name.strip() for text in tasks for name in text.split(",") if name.strip()))


async def work(
    app: Rota,
    show: Show | None,
    logs: Logs,
    only: Collection[str] = (),
    burst: bool = False,
    tethered: bool = False,
    health_file: Path | None = None,
) -> int:
    """Work until the first signal, or until the worker is worn out; the second signal stops the running handlers at
    once. Returns the exit code.

    `show` gets the banner, unless it is None. `logs` is the form and level of the renewer's log lines.
    """
    with stop_signals() as stop:
        if tethered:
            hold_tether(stop)
        own, begun = core_of(app).renewer is None and can_renew(app), asyncio.Event()
        async with AsyncExitStack() as opened:
            address = await opened.enter_async_context(renewing(logs if own else None, begun))
            core_of(app).renewer = core_of(app).renewer or renewer_for(app, address)
            names = await _start(app, only)
            begun.set()
            engine = core_of(app).engine
            stop.hurry = engine.hurry
            await opened.enter_async_context(signs_of_life(lambda: engine, stop.asked, health_file, not tethered))
            try:
                seats = plural(core_of(app).tuning.concurrency, "seat")
                ends = "ends when all is done" if burst else "Ctrl-C stops"
                if show is not None:
                    show.line(f"rota worker: {plural(len(names), 'task')}, {seats}; {ends}")
                await first_of(engine.left.wait(), _until_drained(app, names, stop) if burst else stop.asked.wait())
                if stop.asked.is_set() and any(task.running for task in app.status().tasks.values()):
                    log.info("told to stop; a second Ctrl-C or SIGTERM stops the running handlers at once")
                if not engine.left.is_set():
                    return OK
                return WORN if engine.worn else STOPPED if tethered else OK
            finally:
                await app.stop()


async def _until_drained(app: Rota, tasks: Collection[str], stop: Stop) -> None:
    """Wait until no run of `tasks` is due and none runs here, or until `stop` is asked."""
    client = app.client()
    heard = await client.news(0)
    while not stop.asked.is_set():
        engine = core_of(app).lifecycle.running
        if engine is None or await drained(client, engine, tasks):
            return
        heard = await client.news(LOOK_AGAIN, heard)


async def work_in_many(command: Sequence[str], count: int, burst: bool, show: Show | None, logs: Logs | None) -> int:
    """Run `count` worker processes; return 0 if all of them ended gracefully. Without `logs` there is no renewer."""
    with stop_signals() as stop:
        if show is not None:
            show.line(f"rota worker: {count} processes; Ctrl-C stops them all")
        async with renewing(logs) as address, signs_of_life(lambda: None, stop.asked):
            command = [*command, "--renewer", address] if address else command
            return 0 if await Children(command, count, burst, stop).work() else 1


async def _start(app: Rota, only: Collection[str]) -> list[str]:
    """Start the engine for the tasks in `only`, or for all tasks if it is empty; the app still knows all of them."""
    registry = core_of(app).registry
    every = registry.tasks
    if only:
        registry.tasks = {task.name: task for name, task in registry.names().items() if name in only}
    try:
        await app.start()
        return list(registry.names())
    finally:
        registry.tasks = every


def _tuned(tuning: Tuning, **given: float | tuple[str, ...] | None) -> Tuning:
    changes: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    try:
        return Tuning(**{f: getattr(tuning, f) for f in Tuning.__struct_fields__} | changes)
    except ValueError as error:
        raise InvalidOptions(str(error)) from None


def _wear(max_runs: int | None, max_memory: str | None) -> Callable[[], Wear]:
    if max_runs is not None and max_runs < 1:
        raise InvalidOptions(f"--max-runs {max_runs}: a whole number of runs, at least 1")
    most = bytes_of(max_memory, "--max-memory")
    return lambda: Wear(max_runs, most)
