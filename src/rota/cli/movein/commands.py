"""`rota import crontab`: schedules of other schedulers as a plan, as code or in the store."""

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import App, Parameter

from rota.cli.movein.carry import carry_out
from rota.cli.movein.status import show_status
from rota.cli.movein.zone import zone_of_machine
from rota.cli.options.parameters import CARE, Flag, Shared
from rota.cli.options.target import Target
from rota.cli.render.show import Show
from rota.domain.triggers.zones import zone_name
from rota.errors import InvalidOptions
from rota.movein.plan import Source

To = Annotated[Path | None, Parameter(name="--to", help="Write the tasks into a new file: jobs.py.")]
Apply = Annotated[bool, Flag, Parameter(name="--apply", help="Put the schedules into the store.")]
At = Annotated[
    str | None,
    Parameter(name="--at", help="The cut-over: rota fires from then on, the source before: 2026-11-20T04:00."),
]
Unknown = Annotated[bool, Flag, Parameter(name="--unknown-ok", help="Take tasks that neither app nor workers know.")]
Zone = Annotated[str | None, Parameter(name="--tz", help="The zone of schedules that name none.")]
SystemCrontab = Annotated[
    bool | None,
    Parameter(
        name="--system", negative="--no-system", help="Lines have a user column; default: as in /etc/crontab, cron.d."
    ),
]

movein = App(name="import", help="Carry over the schedules of cron and of other schedulers.", group=CARE)


@movein.command
def crontab(
    file: Annotated[Path, Parameter(help="The crontab: of `crontab -l`, /etc/crontab or a file of /etc/cron.d.")],
    /,
    *,
    tz: Zone = None,
    system: SystemCrontab = None,
    to: To = None,
    apply: Apply = False,
    at: At = None,
    unknown_ok: Unknown = False,
    target: Shared[Target],
    show: Shared[Show],
) -> int:
    """Show what the lines of a crontab become: the same times, or refused and why.

    --to writes a task for each line, which calls the command as cron does. --apply puts schedules into the store; with
    --to, they call the tasks of the new file. Exits with 3, and writes nothing, if a time differs and no
    rule says why.
    """
    return carry_out(read_crontab_file(file, tz, system), to, apply, at, unknown_ok, target, show)


@movein.command
def status(
    kind: Annotated[Literal["crontab"], Parameter(help="What the source is.")],
    where: Annotated[str, Parameter(help="Where it is, as with rota import.")],
    /,
    *,
    tz: Zone = None,
    system: SystemCrontab = None,
    target: Shared[Target],
    show: Shared[Show],
) -> None:
    """Show both sides: which schedules of a source are in the store, when each fires next, and from when on."""
    del kind
    show_status(read_crontab_file(Path(where), tz, system), target, show)


def read_crontab_file(file: Path, tz: str | None, system: bool | None) -> Source:
    from rota.movein.crontab import read_crontab  # here, because other commands do not need it

    zone, zone_from = (_checked(tz), "--tz") if tz else zone_of_machine()
    with_user = system if system is not None else str(file) == "/etc/crontab" or file.parent.name == "cron.d"
    return read_crontab(file, zone, zone_from, with_user)


def _checked(tz: str) -> str:
    try:
        return zone_name(tz) or "UTC"
    except ValueError as error:
        raise InvalidOptions(f"--tz {tz}: {error}") from None
