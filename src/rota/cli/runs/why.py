"""`rota why`: why did it not run?"""

from typing import Annotated

from cyclopts import Parameter

from rota.cli.options.parameters import Shared
from rota.cli.options.target import Target
from rota.cli.render.show import Show
from rota.cli.tasks.disabled import compared
from rota.client.client import Client
from rota.errors import RunNotFound, UnknownTask
from rota.views.decisions import why_view
from rota.views.runs import SHORTEST, find_run
from rota.why import Why, why


def why_not(
    subject: Annotated[
        str, Parameter(help="A task, a schedule, or a run's id or its first or last 6 or more characters.")
    ],
    key: Annotated[str | None, Parameter(help="One key of the task.")] = None,
    /,
    *,
    target: Shared[Target],
    show: Shared[Show],
) -> None:
    """Say in words what keeps something from running, what was decided last, and when it is next."""
    show_why(show, target.run(_why(target, subject, key)))


def show_why(show: Show, answer: Why) -> None:
    if show.json:
        show.value(why_view(answer))
        return
    show.sentence(f"{answer.kind} {answer.subject}: {answer.answer}")
    for fact in answer.facts:
        show.sentence(f"{'!' if fact.holds else '-'} {fact.about}: {fact.text}", hanging=2)


async def _why(target: Target, subject: str, key: str | None) -> Why:
    async with target.client() as client:
        answer = await _found(client, subject, key)
        return await compared(answer, subject, client, target) if answer.kind == "task" else answer


async def _found(client: Client, subject: str, key: str | None) -> Why:
    try:
        return await why(client, subject, key)
    except UnknownTask as unknown:  # a name wins over a part of an id
        if key is not None or len(subject.strip()) < SHORTEST:
            raise
        try:
            run = await find_run(client, subject)
        except RunNotFound:
            raise unknown from None
    return await why(client, run)
