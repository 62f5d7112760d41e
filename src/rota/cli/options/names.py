"""Names of tasks, flows and steps as people type them: an unknown name is refused with a suggestion."""

from collections.abc import Collection, Iterable

from rota.app.core import core_of
from rota.cli.options.target import Target
from rota.client.client import Client
from rota.domain.spec import TaskSpec
from rota.domain.text import did_you_mean
from rota.errors import UnknownTask


def unknown(name: str, known: Iterable[str], where: str = "the app", noun: str = "task") -> str:
    """Return the message for an unknown name, with a suggestion."""
    names = sorted(known)
    there = f"; {where} has: {', '.join(names[:10])}" if names else f"; {where} has no {noun}s"
    return f"no {noun} {name} is defined in {where}{did_you_mean(name, names, there)}"


def check_known(names: Iterable[str], known: Collection[str], where: str = "the app") -> None:
    for name in names:
        if name not in known:
            raise UnknownTask(unknown(name, known, where))


async def check_known_somewhere(names: Iterable[str], client: Client, target: Target) -> None:
    check_known(names, await known_somewhere(client, target), "app or store")


async def known_somewhere(client: Client, target: Target) -> set[str]:
    """Return the tasks of the app, if there is one, and those that the store knows: published, or with unfinished
    runs."""
    known = {spec.name for spec in (await client.rows(TaskSpec)).items}
    known.update(depth.task for depth in (await client.depths()).items)
    if target.reference is not None:
        known.update(core_of(target.app()).registry.names())
    return known
