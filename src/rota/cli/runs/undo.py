"""`rota undo`: take back a pause, a resume, a reschedule or a cancel."""

from typing import Annotated

from cyclopts import Parameter

from rota.cli.options.parameters import Shared
from rota.cli.options.target import Target
from rota.cli.options.user import who
from rota.cli.render.show import Show
from rota.cli.render.text import plural
from rota.client.operations import Operated
from rota.client.operations import undo as undo_here


def undo(
    id: Annotated[str, Parameter(help="The id of an operation, or of an audit entry (rota audit).")],
    /,
    *,
    note: Annotated[str | None, Parameter(help="Why; kept in the audit.")] = None,
    target: Shared[Target],
    show: Shared[Show],
) -> None:
    """Take back what was done within the last 24 hours.

    A pause and a resume are taken back. Rescheduled runs get their old time, if they still wait for the new one. Runs
    that were cancelled while they waited are put again, each as a new run.
    """

    async def take_back() -> Operated:
        async with target.client() as client:
            return await undo_here(client, id, note, who())

    show_undone(show, target.run(take_back()))


def show_undone(show: Show, undone: Operated) -> None:
    if show.json:
        show.value({"done": undone.done, "skipped": undone.skipped})
        return
    changed = f"; {undone.skipped} changed meanwhile" if undone.skipped else ""
    show.line(f"undo: {plural(undone.done, 'change')} taken back{changed}")
