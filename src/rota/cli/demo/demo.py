"""`rota demo`: a small app with the control room in a browser, or with live output in the terminal."""

import asyncio
import logging
import random
from collections import Counter, deque
from collections.abc import Awaitable, Callable
from typing import Annotated

from cyclopts import Parameter

from rota.app.app import Rota
from rota.app.core import core_of
from rota.cli.demo.board import Board
from rota.cli.demo.tasks import demo_app
from rota.cli.options.parameters import Flag, Shared
from rota.cli.options.target import Target
from rota.cli.render.logs import route
from rota.cli.render.show import Show
from rota.cli.worker.children import either
from rota.cli.worker.event_loop import Stop, stop_signals
from rota.client.client import Client
from rota.domain.run import Run, State
from rota.errors import InvalidOptions
from rota.settings import project_folder

FRAME = 0.25
ENOUGH = 100
"""The number of waiting runs at which the submitter stops submitting."""
LOG_LINES = 20


def demo(
    *,
    terminal: Annotated[bool, Flag, Parameter(help="Watch it in this terminal, without a browser.")] = False,
    port: Annotated[int | None, Parameter(help="The port of the control room; 0 takes a free one.")] = None,
    seconds: Annotated[float | None, Parameter(help="End by itself after so many seconds.")] = None,
    rate: Annotated[float, Parameter(help="Runs submitted per second, about.")] = 3.0,
    target: Shared[Target],
    show: Shared[Show],
) -> None:
    """Watch a small rota at work: its own tasks, on SQLite in .rota/demo.db, and the control room in a browser.

    The demo prints an address of this machine, with the token that logs in. Ctrl-C stops the demo gracefully. With
    --terminal, the demo is shown here; when the output is not a terminal, it prints a line per second.
    """
    if not 0.1 <= rate <= 100:
        raise InvalidOptions(f"--rate {rate:g}: from 0.1 to 100 runs per second")
    if seconds is not None and not seconds > 0:
        raise InvalidOptions(f"--seconds {seconds:g}: more than 0")
    if terminal and port is not None:
        raise InvalidOptions("--port is for the control room: leave out --terminal")
    if terminal:
        url = target.url or f"sqlite:///{project_folder() / '.rota' / 'demo.db'}"
        app, submit = demo_app(url)
        asyncio.run(Demo(app, submit, rate, show).run(seconds))
        return
    from rota.cli.demo.served import ServedDemo, check_port

    check_port(port)
    url = target.url or f"sqlite:///{project_folder() / '.rota' / 'demo.db'}"
    asyncio.run(ServedDemo(url, port, rate, show).run(seconds))


class Demo:
    """One demo: the engine, the submitter and the view, on one event loop."""

    def __init__(self, app: Rota, submit: Callable[[], Awaitable[object]], rate: float, show: Show) -> None:
        self.app = app
        self.board = Board(list(app.tasks))
        self.log: deque[str] = deque(maxlen=LOG_LINES)
        self.stopping = False
        self._submit = submit
        self._rate = rate
        self._show = show

    async def run(self, seconds: float | None) -> None:
        """Run until a signal comes or the time is up; then let running handlers end."""
        route(_Tail(self.log), logging.WARNING)
        client = Client(self.app.backend)
        try:
            with stop_signals() as stop:
                await self.board.look(
                    client
                )  # before any run can end: an end that the board did not see does not count
                await self.app.start()
                stop.hurry = core_of(self.app).engine.hurry
                await self._play(client, stop, seconds)
        finally:
            await self.app.stop()
            await client.close()
        self._farewell()

    async def _play(self, client: Client, stop: Stop, seconds: float | None) -> None:
        submitter = asyncio.create_task(self._keep_submitting(), name="demo submits")
        view = self._watch if self._show.terminal else self._report
        finished = asyncio.Event()
        viewer = asyncio.create_task(view(client, finished), name="demo view")
        asked = asyncio.create_task(stop.asked.wait(), name="demo waits for a signal")
        try:
            await asyncio.wait((submitter, viewer, asked), timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self.stopping = True
            for task in (submitter, asked):
                task.cancel()
            await asyncio.wait((submitter, asked))
            await self.app.stop()
            finished.set()
            await viewer
        if not submitter.cancelled():
            submitter.result()

    async def _keep_submitting(self) -> None:
        while True:
            if self.board.queued < ENOUGH:
                await self._submit()
            await asyncio.sleep(min(random.expovariate(self._rate), 5 / self._rate))

    async def _watch(self, client: Client, finished: asyncio.Event) -> None:
        """Redraw the view until the demo ends."""
        from rich.live import Live

        from rota.cli.demo.view import scene
        from rota.cli.render.show import console

        screen = console()
        with Live(console=screen, screen=True, auto_refresh=False) as live:
            while not finished.is_set():
                await self.board.look(client)
                live.update(scene(self, screen.width, screen.height), refresh=True)
                await either(finished, FRAME)
        await self.board.look(client)

    async def _report(self, client: Client, finished: asyncio.Event) -> None:
        """Print a line per second, for pipes and logs."""
        self._show.line(f"rota demo on {self.app.backend.url}")
        while True:
            last = finished.is_set()
            self._show.line(report(self.board, await self.board.look(client)))
            if last:
                return
            await either(finished, 1.0)

    def _farewell(self) -> None:
        board = self.board
        self._show.line(
            f"rota demo ended after {board.seconds:.0f} s: {board.total(State.SUCCEEDED)} succeeded, "
            f"{board.total(State.FAILED)} failed; look closer: rota runs ls --url {self.app.backend.url}"
        )


def report(board: Board, ended: list[Run]) -> str:
    """Return the state of the demo in one line."""
    tasks = Counter(f"{run.task} {run.state}" for run in ended)
    what = ", ".join(f"{count} {task}" for task, count in sorted(tasks.items()))
    return (
        f"{board.seconds:5.1f} s  queued {board.queued}  running {len(board.running)}  "
        f"succeeded {board.total(State.SUCCEEDED)}  failed {board.total(State.FAILED)}  ended now: {what or '-'}"
    )


class _Tail(logging.Handler):
    """Keeps the latest log lines for the view, so that no log line breaks the view."""

    def __init__(self, lines: deque[str]) -> None:
        super().__init__(logging.WARNING)
        self._lines = lines

    def emit(self, record: logging.LogRecord) -> None:
        self._lines.append(record.getMessage().partition("\n")[0])
