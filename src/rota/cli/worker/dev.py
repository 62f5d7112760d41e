"""`rota dev`: a worker that restarts when the code changes."""

import asyncio
from collections.abc import Sequence

from rota.cli.options.parameters import Shared
from rota.cli.options.target import Target
from rota.cli.options.times import seconds_of
from rota.cli.render.logs import LogFormat, LogLevel, Quiet, Verbose, chosen_level, log_options
from rota.cli.render.show import Show
from rota.cli.render.text import plural
from rota.cli.worker.changes import Changes, watchfiles_installed
from rota.cli.worker.children import Child, ending, graceful, worker_command
from rota.cli.worker.event_loop import Stop, stop_signals
from rota.cli.worker.worker import Concurrency, Grace, Lease, Queues, Tasks, split
from rota.errors import InvalidOptions
from rota.settings import project_folder

NAMED = 3


def dev(
    *,
    concurrency: Concurrency = None,
    lease: Lease = None,
    grace: Grace = "5s",
    tasks: Tasks = (),
    queues: Queues = (),
    log_level: LogLevel = None,
    log_format: LogFormat = None,
    verbose: Verbose = False,
    quiet: Quiet = False,
    target: Shared[Target],
    show: Shared[Show],
) -> int:
    """Work as `rota worker` does, and start again when a .py file or the project file changes.

    Files below the project folder count. Running handlers may end first, for --grace seconds. If the code does not
    import, the command waits for the next change.
    """
    if target.reference is None:
        target.app()  # raises with the ways to name an app
    if target.url is not None and target.url.startswith("memory:"):
        raise InvalidOptions("memory:// ends with each start; name another store (--url, ROTA_URL)")
    only = {"tasks": ",".join(split(tasks)) or None, "queues": ",".join(split(queues)) or None}
    logs = log_options(chosen_level(log_level, verbose, quiet), log_format)
    spans = {"lease": seconds_of(lease, "--lease"), "grace": seconds_of(grace, "--grace")}
    command = worker_command(target, concurrency=concurrency, **spans, **only, **logs)
    return asyncio.run(Dev(command, show).run())


class Dev:
    def __init__(self, command: Sequence[str], show: Show) -> None:
        self._command = command
        self._show = show

    async def run(self) -> int:
        """Run until a signal; return 0 if the last worker ended gracefully."""
        changes = Changes(project_folder())
        how = "" if watchfiles_installed() else " by looking twice a second; pip install rota[reload] for less"
        self._show.line(f"rota dev: watching {changes.folder}{how}; Ctrl-C stops")
        with stop_signals() as stop:
            asked = asyncio.create_task(stop.asked.wait(), name="rota dev waits for a signal")
            try:
                while True:
                    ended_well = await self._one_life(changes, stop, asked)
                    if asked.done():
                        return 0 if ended_well else 1
            finally:
                asked.cancel()
                await changes.close()

    async def _one_life(self, changes: Changes, stop: Stop, asked: "asyncio.Task[bool]") -> bool:
        """Run one worker until the code changes or `stop` is asked."""
        child = await Child.start(self._command)
        stop.hurry = child.terminate
        change = asyncio.create_task(changes.next(), name="rota dev watches")
        ended = asyncio.create_task(child.ended(), name="rota dev's worker")
        try:
            await asyncio.wait((asked, change, ended), return_when=asyncio.FIRST_COMPLETED)
            if ended.done() and not asked.done() and not change.done():
                self._show.line(f"rota dev: the worker {ending(ended.result())}; it starts again when a file changes")
                await asyncio.wait((asked, change), return_when=asyncio.FIRST_COMPLETED)
            if change.done() and not asked.done():
                self._show.line(f"rota dev: {_named(change.result())} changed, the worker starts again")
            was_gone = ended.done()
            child.terminate()
            return graceful(await ended) or was_gone
        finally:
            change.cancel()
            await asyncio.wait((change,))


def _named(files: Sequence[str]) -> str:
    more = len(files) - NAMED
    return ", ".join(files[:NAMED]) + (f" and {plural(more, 'more file')}" if more > 0 else "")
