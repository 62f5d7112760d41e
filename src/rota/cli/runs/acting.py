"""`rota runs retry|cancel|pause|resume|reschedule|delete`: for runs by their ids, or for all that match a filter;
`rota runs update`: for one run."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Annotated, Any, cast
from zoneinfo import ZoneInfo

import msgspec
from cyclopts import Parameter

from rota.app.runs import submit_operation
from rota.cli.options.arguments import Document, gather
from rota.cli.options.parameters import Shared, Yes
from rota.cli.options.target import Target
from rota.cli.options.times import read_instant, seconds_of
from rota.cli.options.user import confirm, who
from rota.cli.render.show import Column, Show
from rota.cli.render.text import plural
from rota.cli.runs.filters import EVERY, Filter
from rota.client.client import Client
from rota.client.edits import Changes, edit_run
from rota.client.fleet import is_alive
from rota.client.handle import RunHandle
from rota.client.operations import OPERATION, Action, Operated, Operation, checked, due_at, filter_of, perform
from rota.client.undo import UNDOABLE
from rota.domain.run import DEFAULT_QUEUE, Run
from rota.errors import InvalidArguments, InvalidOptions, RotaError
from rota.store import Command, Freeze, RunQuery, WorkerSeen
from rota.store.paging import count_runs
from rota.task import new_id
from rota.views.runs import find_run, find_runs

Ids = Annotated[str, Parameter(help="Ids of runs, or their first or last 6 or more characters; else give a filter.")]
Note = Annotated[str | None, Parameter(help="Why; kept with the runs.")]


def retry(*ids: Ids, filter: Filter = EVERY, yes: Yes = False, target: Shared[Target], show: Shared[Show]) -> None:
    """Retry ended runs, each as a new run. Repeating the command makes no second one."""

    async def put(client: Client, found: Sequence[str]) -> list[dict[str, object]]:
        return [{"id": (await RunHandle(client, i).retry()).id, "retry_of": i} for i in found]

    columns = [Column("id", whole=True), Column("retry_of", title="retry of", whole=True)]
    if not _all_that_match("retry", ids, filter, None, yes, target, show):
        show.records(target.run(_by_id(target, ids, put)), columns)


def cancel(
    *ids: Ids, filter: Filter = EVERY, note: Note = None, yes: Yes = False, target: Shared[Target], show: Shared[Show]
) -> None:
    """Cancel runs: queued ones end at once, running ones are asked to stop."""
    if not _all_that_match("cancel", ids, filter, note, yes, target, show):
        _control(Command.CANCEL, ids, note, target, show, "had ended before; what has ended stays as it is")


def pause(
    *ids: Ids, filter: Filter = EVERY, note: Note = None, yes: Yes = False, target: Shared[Target], show: Shared[Show]
) -> None:
    """Hold runs: queued ones at once; running ones are stopped and go on from their checkpoint."""
    if not _all_that_match("pause", ids, filter, note, yes, target, show):
        _control(Command.PAUSE, ids, note, target, show, "had ended or been paused before")


def resume(
    *ids: Ids, filter: Filter = EVERY, note: Note = None, yes: Yes = False, target: Shared[Target], show: Shared[Show]
) -> None:
    """Let paused runs go on."""
    if not _all_that_match("resume", ids, filter, note, yes, target, show):
        _control(Command.RESUME, ids, note, target, show, "could not be resumed: only what is paused can be")


def delete(
    *ids: Ids, filter: Filter = EVERY, note: Note = None, yes: Yes = False, target: Shared[Target], show: Shared[Show]
) -> None:
    """Delete runs that ended at least a minute ago. What they have done stays marked as done."""
    if not _all_that_match("delete", ids, filter, note, yes, target, show):
        _control(Command.DELETE, ids, note, target, show, "stay: only what ended at least a minute ago is deleted")


def reschedule(
    *ids: Ids,
    at: Annotated[str | None, Parameter(help="Due at an instant, as 2026-11-15T09:00:00Z.")] = None,
    delay: Annotated[str | None, Parameter(help="Due so long from now: seconds, or 5m, 2h, 1d.")] = None,
    filter: Filter = EVERY,
    note: Note = None,
    yes: Yes = False,
    target: Shared[Target],
    show: Shared[Show],
) -> None:
    """Give queued runs another due time."""
    if (at is None) == (delay is None):
        raise InvalidOptions("when? Give --at or --delay")
    instant = None if at is None else read_instant(at, "--at", ZoneInfo(target.tz()))
    changes = Changes(at=instant, delay=seconds_of(delay, "--delay"))

    async def move(client: Client, found: Sequence[str]) -> list[dict[str, object]]:
        return [{"id": i, "asked": await edit_run(client, i, changes, note)} for i in found]

    if not _all_that_match("reschedule", ids, filter, note, yes, target, show, changes):
        _show_asked(show, target.run(_by_id(target, ids, move)), "stay as they are: only what is queued can be moved")


def update(
    id: Annotated[str, Parameter(help="The run's id, or its first or last 6 or more characters.")],
    /,
    *values: Annotated[
        str, Parameter(name="ARGS", help="Arguments to change as name=value, as with rota submit; null takes one away.")
    ],
    args: Document = None,
    priority: Annotated[int | None, Parameter(help="From -100 to 100, higher goes first.")] = None,
    expires: Annotated[str | None, Parameter(help="Never start later than this after it is due: 90s, 5m, 2h.")] = None,
    note: Note = None,
    target: Shared[Target],
    show: Shared[Show],
) -> None:
    """Give one queued run another priority, another expiry or other arguments. What the command does not name stays."""

    async def change() -> dict[str, object]:
        async with target.client() as client:
            found = await find_run(client, id)
            given = _patch(client, await client.run(found), values, args)
            changes = Changes(priority=priority, expires=seconds_of(expires, "--expires"), args=given)
            return {"id": found, "asked": await edit_run(client, found, changes, note)}

    _show_asked(show, [target.run(change())], "stays as it is: only what is queued can be changed")


def _patch(client: Client, run: Run, values: Sequence[str], document: str | None) -> dict[str, object] | None:
    """Return the arguments to change. What is a text now stays one: `5` is the text "5" then. For the others, the code
    of the task says so, if it is here; `null` always takes an argument away."""
    if not values and document is None:
        return None
    known = cast("dict[str, object]", msgspec.json.decode(run.args))
    signature = client.signature_of(run.task)
    coded: dict[str, Any] = {} if signature is None else signature.hints
    texts = {name: str | None for name, value in known.items() if isinstance(value, str)}
    given = gather(values, document, {name: hint | None for name, hint in coded.items()} | texts)
    if given.positional:
        raise InvalidArguments("--args: a JSON object, with the names of the arguments to change")
    return given.named


def _control(command: Command, given: Sequence[str], note: str | None, target: Target, show: Show, late: str) -> None:
    """Show for each run whether the command changed it; raise if one command changed nothing."""

    async def control(client: Client, found: Sequence[str]) -> list[dict[str, object]]:
        heard = (await client.control(command, found, note, who())).items
        states = {run.id: run.state.value for run in (await client.runs(RunQuery(ids=found))).runs}
        return [{"id": i, "asked": bool(yes), "state": states.get(i)} for i, yes in zip(found, heard, strict=True)]

    _show_asked(show, target.run(_by_id(target, given, control)), late)


def _show_asked(show: Show, answers: list[dict[str, object]], late: str) -> None:
    stateful = bool(answers) and "state" in answers[0]
    show.records(answers, [Column("id", whole=True), Column("asked"), *([Column("state")] if stateful else [])])
    missed = sum(not answer["asked"] for answer in answers)
    if missed:
        raise RotaError(f"{plural(missed, 'run')} {late}")


async def _by_id(
    target: Target, given: Sequence[str], act: Callable[[Client, Sequence[str]], Awaitable[list[dict[str, object]]]]
) -> list[dict[str, object]]:
    async with target.client() as client:
        return await act(client, await find_runs(client, given))


def _all_that_match(
    action: Action,
    ids: Sequence[str],
    filter: Filter,
    note: str | None,
    yes: bool,
    target: Target,
    show: Show,
    changes: Changes | None = None,
) -> bool:
    """Act on all runs that match the filter; False if the command names runs by their ids."""
    given = ", ".join(f"--{name.replace('_', '-')}" for name in filter.given())
    if ids and given:
        raise InvalidOptions(f"name runs by their ids or by {given}, not both")
    if ids:
        return False
    if not given:
        raise InvalidOptions(f"which runs? Give their ids, or a filter such as --task; rota runs {action} --help")
    operated = target.run(_operate(action, filter, note, yes, target, show, changes), code=filter.needs_code)
    if operated is None:
        show.note("no runs match")
    elif show.json:
        show.value({"action": action, "done": operated.done, "skipped": operated.skipped})
    else:
        show.line(f"{action}: {plural(operated.done, 'run')} done, {operated.skipped} skipped")
    return True


async def _operate(
    action: Action,
    filter: Filter,
    note: str | None,
    yes: bool,
    target: Target,
    show: Show,
    changes: Changes | None,
) -> Operated | None:
    """Count the runs, ask, and act: by a worker, or here if there is none. None: there are no such runs."""
    async with target.client() as client:
        query = checked(await filter.query(client, target))
        matching = await count_runs(client, query)
        if not matching.count and not matching.more:
            return None
        words = f"{'more than ' if matching.more else ''}{plural(matching.count, 'run')}"
        if not yes:
            await confirm(f"{action} {words}?", "nothing was changed", f"this would {action} {words}")
        due = None if changes is None else await due_at(client, changes)
        operation = Operation(action=action, filter=filter_of(query), due_at=due, note=note, by=who())
        if not await _attended(client):
            id = new_id()
            operated = await perform(client, operation, id)
            if operated.done and action in UNDOABLE:
                show.note(f"rota undo {id} takes it back")
            return operated
        handle = await submit_operation(client, operation)
        show.note(f"operation {handle.id} acts on {words}; it goes on if you leave")
        return await handle.result()


async def _attended(client: Client) -> bool:
    """Return whether a live worker takes operations now."""
    seen = await client.rows(WorkerSeen)
    if (await client.rows(Freeze)).items:
        return False
    return any(
        OPERATION in worker.tasks
        and is_alive(worker, seen.now)
        and (not worker.queues or DEFAULT_QUEUE in worker.queues)
        for worker in seen.items
    )
