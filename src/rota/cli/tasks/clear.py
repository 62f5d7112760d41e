"""`rota clear`: end the waiting runs of a task."""

import sys
from typing import Annotated

from cyclopts import Parameter

from rota.cli.options.names import check_known_somewhere
from rota.cli.options.parameters import Shared, Yes
from rota.cli.options.target import Target
from rota.cli.options.user import confirm, who
from rota.cli.render.show import Show
from rota.cli.render.text import plural
from rota.store import Command, Scope


def clear(
    task: str,
    /,
    *,
    note: Annotated[str | None, Parameter(help="Why; kept with the runs.")] = None,
    yes: Yes = False,
    target: Shared[Target],
    show: Shared[Show],
) -> None:
    """End all waiting runs of a task; running ones go on. Prints how many there were.

    Asks first on a terminal.

    Parameters
    ----------
    task
        The task's name.
    """
    count = target.run(_clear(target, task, note, asks=not yes and sys.stdin.isatty()), code=True)
    if show.json:
        show.value({"task": task, "cleared": count})
    else:
        show.line(f"{plural(count, 'run')} of {task} ended")


async def _clear(target: Target, task: str, note: str | None, asks: bool) -> int:
    async with target.client() as client:
        await check_known_somewhere([task], client, target)
        if asks:
            depths = (await client.depths()).items
            waiting = sum(depth.queued + depth.paused for depth in depths if depth.task == task)
            await confirm(f"End {plural(waiting, 'waiting run')} of {task}?", "nothing was ended")
        total = 0
        while ended := (await client.control(Command.DROP, [task], note, who(), of=Scope.TASKS)).items[0]:
            total += ended
        return total
