"""`rota freeze` and `rota thaw`: start nothing in this namespace for a while."""

from typing import Annotated

from cyclopts import Parameter

from rota.cli.options.parameters import Shared
from rota.cli.options.target import Target
from rota.cli.options.until import Until, instant_of
from rota.cli.options.user import who
from rota.cli.render.show import Show
from rota.domain.timing import shown
from rota.errors import InvalidOptions
from rota.store import Freeze


def freeze(
    *,
    until: Until = None,
    note: Annotated[str | None, Parameter(help="Why; `rota why` shows it.")] = None,
    target: Shared[Target],
    show: Shared[Show],
) -> None:
    """Start no more runs in this namespace, until `rota thaw`. What runs goes on, and submits are still taken."""

    async def send() -> tuple[bool, Freeze | None]:
        async with target.client() as client:
            changed = (await client.freeze(True, await instant_of(client, until, target), note, who())).items[0]
            return changed, next(iter((await client.rows(Freeze)).items), None)

    changed, found = target.run(send())
    if found is None:
        raise InvalidOptions(f"--until {until} is past: nothing is frozen")
    end = "until `rota thaw`" if found.until is None else f"until {shown(found.until)}"
    if show.json:
        show.value({"frozen": True, "changed": changed, "until": None if found.until is None else shown(found.until)})
    else:
        show.line(f"nothing starts here {end}")


def thaw(*, target: Shared[Target], show: Shared[Show]) -> None:
    """Let runs start again after `rota freeze`."""

    async def send() -> bool:
        async with target.client() as client:
            return (await client.freeze(False)).items[0]

    changed = target.run(send())
    if show.json:
        show.value({"frozen": False, "changed": changed})
    else:
        show.line("runs start again" if changed else "nothing was frozen")
