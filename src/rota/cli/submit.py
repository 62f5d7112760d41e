"""`rota submit`: a run made by hand."""

import asyncio
import difflib
import os
import time
from collections.abc import Iterable
from datetime import datetime
from typing import Annotated

import msgspec
from cyclopts import Parameter

from rota.app import Rota
from rota.cli.apps import Target
from rota.cli.groups import Flag, Shared
from rota.cli.records import from_json, run_record
from rota.cli.show import Show, to_json
from rota.cli.values import Given, gather
from rota.client import Client
from rota.domain.arguments import type_hints
from rota.domain.ids import uuid7
from rota.domain.intake import Options, new_run
from rota.domain.policy import Policy
from rota.domain.run import NewRun, Run, State
from rota.errors import InvalidArguments, InvalidOptions, RotaError, RunCancelled, RunFailed, UnknownTask
from rota.handle import accept
from rota.store import Backend
from rota.task import Bound


def submit(
    task: str,
    /,
    *values: str,
    args: Annotated[
        str | None, Parameter(allow_leading_hyphen=True, help="All arguments: JSON, @file, or - for standard input.")
    ] = None,
    delay: Annotated[float | None, Parameter(help="Due so many seconds from now.")] = None,
    at: Annotated[str | None, Parameter(help="Due at an instant, as 2026-11-15T09:00:00Z.")] = None,
    expires: Annotated[float | None, Parameter(help="Never start later than this after it was due.")] = None,
    priority: Annotated[int | None, Parameter(help="From -100 to 100, higher goes first.")] = None,
    wait: Annotated[bool, Flag, Parameter(help="Wait for the end and print the result.")] = False,
    timeout: Annotated[float | None, Parameter(help="Wait at most so many seconds.")] = None,
    unknown_ok: Annotated[bool, Flag, Parameter(help="Take a task that the app does not know.")] = False,
    target: Shared[Target],
    show: Shared[Show],
) -> None:
    """Make a run and print its id.

    Parameters
    ----------
    task
        The task's name.
    values
        Its arguments as name=value; a value that reads as JSON is JSON, except where the task takes text.
    """
    if timeout is not None and not wait:
        raise InvalidOptions("--timeout says how long to --wait; give both")
    app = None if unknown_ok and target.reference is None else target.app()
    options = Options(delay=delay, at=_instant(at), expires=expires, priority=priority)
    if app is not None and task in app.tasks:
        new = _known(app, task, values, args, options)
    elif unknown_ok:
        new = _unchecked(task, gather(values, args, {}), options)
    else:
        raise UnknownTask(_unknown(task, app.tasks if app else ()))
    backend = app.backend if app else target.backend()
    ended = asyncio.run(_put(backend, new, wait, timeout))
    _answer(show, new, ended)


def _known(app: Rota, name: str, values: Iterable[str], args: str | None, options: Options) -> NewRun:
    """Checked against the task's own parameters, with its policy."""
    task = app.tasks[name]
    given = gather(list(values), args, type_hints(task.fn))
    return Bound(task, task.encode(tuple(given.positional), given.named), options).to_run()


def _unchecked(name: str, given: Given, options: Options) -> NewRun:
    """Stored as given: whoever knows the task will judge."""
    if given.positional:
        raise InvalidArguments(f"{name} is not known here, so arguments need names: --args takes a JSON object")
    try:
        id = uuid7(time.time_ns() // 1_000_000, os.urandom(10))
        return new_run(id, name, msgspec.json.encode(given.named), Policy(), options)
    except (TypeError, ValueError) as error:
        raise InvalidOptions(str(error)) from None


async def _put(backend: Backend, new: NewRun, wait: bool, timeout: float | None) -> Run | None:
    """Durable when this returns; the ended run if it was waited for."""
    if backend.url.startswith("memory:"):
        raise InvalidOptions("memory:// ends with this command; name a store that a worker shares (--url, ROTA_URL)")
    client = Client(backend)
    try:
        accept((await (await client.store()).put([new])).items[0])
        return await client.ended(new.id, timeout) if wait else None
    except TimeoutError:
        raise RotaError(f"{new.task} {new.id} has not ended after {timeout:g} s; it goes on") from None
    finally:
        await client.close()


def _answer(show: Show, new: NewRun, ended: Run | None) -> None:
    if ended is None:
        if show.json:
            show.value({"id": new.id, "task": new.task})
        else:
            show.line(new.id)
        return
    if show.json:
        show.value(run_record(ended))
    elif ended.state is State.SUCCEEDED:
        result = from_json(ended.result or b"null")
        show.line(result if isinstance(result, str) else to_json(result))
    if ended.state is State.FAILED:
        raise RunFailed(ended)
    if ended.state is State.CANCELLED:
        raise RunCancelled(ended)


def _instant(text: str | None) -> datetime | None:
    if text is None:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise InvalidOptions(f"--at {text}: not an ISO 8601 instant; write it like 2026-11-15T09:00:00Z") from None
    if moment.tzinfo is None:
        raise InvalidOptions(f"--at {text} has no time zone; end it with Z or an offset like +01:00")
    return moment


def _unknown(name: str, known: Iterable[str]) -> str:
    names = sorted(known)
    close = difflib.get_close_matches(name, names, n=1)
    if close:
        hint = f"did you mean {close[0]}?"
    else:
        hint = f"the app has: {', '.join(names[:10])}" if names else "the app has no tasks"
    return f"no task {name} is defined in the app; {hint} (--unknown-ok takes any name)"
