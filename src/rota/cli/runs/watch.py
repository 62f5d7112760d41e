"""`rota watch`: follow one run until it has ended."""

import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Annotated

from cyclopts import Parameter
from msgspec import Struct

from rota.cli.options.parameters import Shared
from rota.cli.options.target import Target
from rota.cli.options.times import seconds_of
from rota.cli.render.show import Column, Show
from rota.cli.render.text import iso, one_line
from rota.cli.runs.endings import judge, result_text, show_result, too_late
from rota.client.client import Client
from rota.client.fleet import PATIENCE, late_words, see, unattended, wants_a_worker
from rota.client.session import LOOK_AGAIN
from rota.domain.run import Run, State
from rota.errors import InvalidOptions, RunNotFound
from rota.store import Page, RunQuery
from rota.store.paging import with_fans
from rota.views.runs import find_run, result_view
from rota.views.values import record

FIELDS = ("at", "state", "attempt", "progress", "message")
COLUMNS = [Column(name) for name in FIELDS]


def watch(
    id: str,
    /,
    *,
    timeout: Annotated[
        str | None, Parameter(allow_leading_hyphen=True, help="Follow it at most so long: seconds, or 5m, 2h.")
    ] = None,
    target: Shared[Target],
    show: Shared[Show],
) -> None:
    """Follow a run until it has ended, then print its result; exits with 1 if it failed or was cancelled.

    On a terminal with a bar; in a pipe with a line per change; with --json with an object per change.

    Parameters
    ----------
    id
        The run's id, or its first or last 6 or more characters.
    """
    patience = seconds_of(timeout, "--timeout")
    if patience is not None and not patience >= 0:
        raise InvalidOptions(f"--timeout {patience:g}: seconds from 0")
    run = target.run(_watch(target, id, patience, show))
    if show.terminal and not show.json:
        show_result(show, run)
    judge(run)


class Look(Struct, frozen=True):
    """A run as it was at `now` by the store's clock, which was `at` by the clock of this process."""

    run: Run
    now: float
    at: float
    missing: str = ""
    """A warning if no worker is there for the run, else empty."""

    @property
    def face(self) -> tuple[object, ...]:
        """The fields whose change is shown."""
        run = self.run
        return run.state, run.fence, run.progress, run.parked, run.pause_requested, run.cancel_requested, self.missing


async def looks(client: Client, id: str, timeout: float | None) -> AsyncGenerator[Look]:
    """Yield the run each time it has changed, until it has ended or `timeout` is over."""
    deadline = None if timeout is None else time.monotonic() + timeout
    last: Look | None = None
    heard = await client.news(0)
    began = time.monotonic()
    while True:
        page = await with_fans(client, await client.runs(RunQuery(ids=[id])))
        if not page.runs:
            raise RunNotFound(f"no run {id} any more: it ended so long ago that it is forgotten")
        missing = await _missing(client, page, time.monotonic() - began)
        look = Look(page.runs[0], page.now, time.monotonic(), missing)
        if last is None or look.face != last.face:
            last = look
            yield look
        if look.run.state.final:
            return
        left = LOOK_AGAIN if deadline is None else min(LOOK_AGAIN, deadline - time.monotonic())
        if left <= 0:
            ended, words = await late_words(client, id, timeout or 0.0)
            if ended is None:
                raise too_late(TimeoutError(words))
        heard = await client.news(left, heard)


async def _missing(client: Client, page: Page, waited: float) -> str:
    """Return the warning that no worker is there for a due or stranded run, after a while of watching."""
    run = page.runs[0]
    if waited < PATIENCE or not wants_a_worker(run, page.now):
        return ""
    return unattended(run, await see(client)) or ""


async def _watch(target: Target, given: str, timeout: float | None, show: Show) -> Run:
    async with target.client() as client:
        id = await find_run(client, given)
        async with aclosing(looks(client, id, timeout)) as seen:
            return await (_draw(seen) if show.terminal and not show.json else _report(seen, show))


async def _report(seen: AsyncGenerator[Look], show: Show) -> Run:
    if not show.json:
        show.row({name: name for name in FIELDS}, COLUMNS)
    async for look in seen:
        show.row(_record(look), COLUMNS)
        if look.run.state.final:
            return look.run
    raise AssertionError("a run is followed to its end")


async def _draw(seen: AsyncGenerator[Look]) -> Run:
    from rich.live import Live

    from rota.cli.render.show import console
    from rota.cli.runs.watch_view import Bar

    bar = Bar()
    with Live(bar, console=console(), refresh_per_second=8) as live:
        async for look in seen:
            bar.look = look
            live.refresh()
            if look.run.state.final:
                return look.run
    raise AssertionError("a run is followed to its end")


def attempt(run: Run) -> int:
    """Return the number of the current or last call; 0 before the first."""
    calls = run.failures + run.losses
    return calls if run.state is State.FAILED and calls else calls + (run.fence > 0)


def message(look: Look, missing: bool = True) -> str:
    """Return the handler's last message, or a warning that no worker is there; at the end, the result or the error."""
    run = look.run
    if run.state is State.SUCCEEDED:
        return one_line(result_text(run))
    if run.state.final:
        return one_line(str(run.error or run.note or run.reason or ""))
    asked = "cancel asked" if run.cancel_requested else "pause asked" if run.pause_requested else ""
    word = run.progress.message if run.progress else ""
    error = f"after {run.error}" if run.error and run.state is State.QUEUED else ""
    waits = "waits for a limit or rate" if run.parked else ""
    return one_line(", ".join(part for part in (asked, word, waits, error, look.missing if missing else "") if part))


def _record(look: Look) -> dict[str, object]:
    run = look.run
    found: dict[str, object] = {
        "at": iso(look.now),
        "id": run.id,
        "task": run.task,
        "state": run.state.value,
        "attempt": attempt(run),
        "progress": run.progress.share if run.progress else None,
        "message": message(look),
    }
    if run.state is State.SUCCEEDED:
        found["result"] = result_view(run)
    elif run.state.final:
        found["error"] = record(run.error) if run.error else None
        found["reason"] = run.reason.value if run.reason else None
    return found
