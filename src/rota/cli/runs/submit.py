"""`rota submit`: submit a run."""

import sys
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Annotated

from cyclopts import Parameter
from msgspec import Struct

from rota.app.app import Rota
from rota.app.core import core_of
from rota.cli.options.arguments import Document, Given, gather, gather_for
from rota.cli.options.names import unknown
from rota.cli.options.parameters import Flag, Shared
from rota.cli.options.target import Target, check_shared
from rota.cli.options.times import seconds_of
from rota.cli.render.show import Show
from rota.cli.runs.endings import judge, show_result, too_late
from rota.cli.tasks.disabled import refused_words
from rota.client.client import Client
from rota.client.handle import accept
from rota.domain.decision import Decision, Reason
from rota.domain.guards import Join, Unique
from rota.domain.intake import Options
from rota.domain.policy import Lost, Retry
from rota.domain.run import Run
from rota.domain.spec import TaskSpec
from rota.errors import InvalidArguments, InvalidOptions, Refused, UnknownTask
from rota.task import WAIT, Call, definition_of
from rota.task.remote import call_by_spec
from rota.views.runs import run_view


class Submitted(Struct, frozen=True):
    """The decision about a submit; `ended` is the ended run, if the command waited for it."""

    task: str
    decision: Decision
    ended: Run | None


def submit(
    task: str,
    /,
    *values: str,
    args: Document = None,
    delay: Annotated[
        str | None, Parameter(allow_leading_hyphen=True, help="Due so long from now: seconds, or 5m, 2h, 1d.")
    ] = None,
    at: Annotated[str | None, Parameter(help="Due at an instant, as 2026-11-15T09:00:00Z.")] = None,
    expires: Annotated[
        str | None, Parameter(allow_leading_hyphen=True, help="Never start later than this after it was due.")
    ] = None,
    priority: Annotated[int | None, Parameter(help="From -100 to 100, higher goes first.")] = None,
    key: Annotated[str | None, Parameter(help="What the run is about, instead of the task's own key.")] = None,
    unique: Annotated[Unique | None, Parameter(help="Make none while an equal one is queued, active or done.")] = None,
    join: Annotated[
        Join | None, Parameter(help="What becomes of an equal run that waits: keep, push, set, refuse.")
    ] = None,
    within: Annotated[str | None, Parameter(help="With --unique done: forget a success after so long.")] = None,
    queue: Annotated[str | None, Parameter(help="The queue of the run, instead of the task's.")] = None,
    run_timeout: Annotated[str | None, Parameter(help="Stop a call after so long, instead of the task's.")] = None,
    retry: Annotated[int | None, Parameter(help="Retry a failed call so often, instead of the task's.")] = None,
    lost: Annotated[Lost | None, Parameter(help="If its worker dies: retry, or fail; instead of the task's.")] = None,
    header: Annotated[
        list[str] | None, Parameter(help="A header as name=value, which travels with the run; may be repeated.")
    ] = None,
    id: Annotated[str | None, Parameter(help="The id of the run: a second submit of it answers the same run.")] = None,
    wait: Annotated[bool, Flag, Parameter(help="Wait for the end and print the result.")] = False,
    timeout: Annotated[str | None, Parameter(help="Wait at most so long: seconds, or 5m, 2h.")] = None,
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
    options = Options(
        delay=seconds_of(delay, "--delay"),
        at=instant_of(at),
        expires=seconds_of(expires, "--expires"),
        priority=priority,
        key=key,
        unique=unique,
        join=join,
        within=seconds_of(within, "--within"),
        queue=queue,
        timeout=seconds_of(run_timeout, "--run-timeout"),
        retry=None if retry is None else Retry(retry),
        lost=lost,
        headers=None if header is None else _headers(header),
        id=id,
    )
    made = call_named(app, task, values, args, options, unknown_ok)
    client = app.client() if app else Client(target.backend())
    if sys.stderr.isatty() and not show.json and target.takes_default(app):
        show.note(f"into {client.backend.url}, the default store")
    try:
        done = target.run(_put(client, made, show if wait else None, seconds_of(timeout, "--timeout")))
    except Refused as refused:
        if refused.reason is not Reason.DISABLED:
            raise
        raise Refused(refused.decision, refused_words(app, task)) from None
    _answer(show, done)


def call_named(
    app: Rota | None, task: str, values: Sequence[str], args: str | None, options: Options, unknown_ok: bool
) -> Call:
    """Return the call that a submit of the command line makes."""
    if app is not None and task in core_of(app).registry.names():
        return _known(app, task, values, args, options)
    if unknown_ok:
        return _unchecked(task, gather(values, args, {}), options)
    raise UnknownTask(f"{unknown(task, core_of(app).registry.names() if app else ())} (--unknown-ok takes any name)")


def _known(app: Rota, name: str, values: Iterable[str], args: str | None, options: Options) -> Call:
    """Return a run of a task whose code is here: arguments are checked against the signature."""
    task = core_of(app).registry.names()[name]
    given = gather_for(task, list(values), args)
    return definition_of(task).call(tuple(given.positional), given.named, options)


def _unchecked(name: str, given: Given, options: Options) -> Call:
    """Return a run of a task whose code is elsewhere: its worker checks the arguments."""
    if given.positional:
        raise InvalidArguments(f"{name} is not known here, so arguments need names: --args takes a JSON object")
    return call_by_spec(TaskSpec(name), (), given.named, options)


async def _put(client: Client, call: Call, wait: Show | None, timeout: float | None) -> Submitted:
    """Put the run; it is durable on return. With `wait`, show its id and return the ended run."""
    check_shared(client.backend)
    try:
        new = call.to_run_at(0.0 if call.once is None else await client.now())
        decision = accept(await client.submit(new, WAIT))
        if wait is None:
            return Submitted(new.task, decision, None)
        wait.note(f"waiting for run {decision.run}")  # before the wait, so that Ctrl-C leaves the id on the screen
        ended = await _ended(client, decision.run, timeout)
        return Submitted(new.task, decision, ended)
    finally:
        await client.close()


async def _ended(client: Client, id: str, timeout: float | None) -> Run:
    try:
        return await client.ended(id, timeout)
    except TimeoutError as error:
        raise too_late(error) from None


def _answer(show: Show, made: Submitted) -> None:
    decision, ended = made.decision, made.ended
    joined = decision.reason is Reason.JOINED
    if joined:
        show.note("joined: this run was there already")
    if show.json:
        brief = {"id": decision.run, "task": made.task, "created": not joined}
        show.value(brief if ended is None else run_view(ended))
    elif ended is None:
        show.line(decision.run)
    else:
        show_result(show, ended)
    if ended is not None:
        judge(ended)


def _headers(given: Iterable[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals:
            raise InvalidOptions(f"--header {text}: write it as name=value")
        found[name] = value
    return found


def instant_of(text: str | None) -> datetime | None:
    if text is None:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise InvalidOptions(f"--at {text}: not an ISO 8601 instant; write it like 2026-11-15T09:00:00Z") from None
    if moment.tzinfo is None:
        raise InvalidOptions(f"--at {text} has no time zone; end it with Z or an offset like +01:00")
    return moment
