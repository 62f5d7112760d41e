"""`rota import`: schedules of other schedulers as a plan, as code or in the store."""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import App, Parameter

from rota.cli.movein.carry import Carry, carry_out
from rota.cli.movein.load import load_object
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
Disable = Annotated[
    bool, Flag, Parameter(name="--disable-source", help="Let the source fire nothing from --at on. Needs --apply.")
]
Zone = Annotated[str | None, Parameter(name="--tz", help="The zone of schedules that name none.")]
SystemCrontab = Annotated[
    bool | None,
    Parameter(
        name="--system", negative="--no-system", help="Lines have a user column; default: as in /etc/crontab, cron.d."
    ),
]

Kind = Literal["crontab", "apscheduler", "beat-db", "celery", "huey", "k8s", "systemd"]

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
    return carry_out(read_crontab_file(file, tz, system), Carry(to, apply, at, unknown_ok), target, show)


@movein.command
def apscheduler(
    scheduler: Annotated[str, Parameter(help="The scheduler, as module:attribute. Its module is imported.")],
    /,
    *,
    to: To = None,
    apply: Apply = False,
    at: At = None,
    disable_source: Disable = False,
    unknown_ok: Unknown = False,
    target: Shared[Target],
    show: Shared[Show],
) -> int:
    """Show what the jobs of an APScheduler 3 become: the same times, other times at named instants, or refused and why.

    Jobs in stores are read by APScheduler itself. No job runs: a scheduler that its module starts is started paused.
    --to writes a task for each job, --apply puts schedules that call tasks named as the jobs' functions.
    --disable-source gives jobs in a job store an end at --at. Exits with 3, and writes nothing, if a time differs and
    no rule says why.
    """
    return carry_out(read_jobs(scheduler), Carry(to, apply, at, unknown_ok, disable_source), target, show)


@movein.command
def beat_db(
    where: Annotated[str, Parameter(help="sqlite:///PATH, postgresql://…, or a module of Django settings.")],
    /,
    *,
    to: To = None,
    apply: Apply = False,
    at: At = None,
    disable_source: Disable = False,
    unknown_ok: Unknown = False,
    target: Shared[Target],
    show: Shared[Show],
) -> int:
    """Show what the rows of django-celery-beat become: the same times, others at named instants, or refused and why.

    Its tables are read by SQL, without Celery and Django. If Celery is installed, its own crontab is the proof.
    --to writes a task for each row, --apply puts schedules that call the tasks by their names in Celery.
    --disable-source sets `expires` of the rows to --at. Exits with 3, and writes nothing, if a time differs and no
    rule says why.
    """
    return carry_out(read_beat_db(where), Carry(to, apply, at, unknown_ok, disable_source), target, show)


@movein.command
def celery(
    app: Annotated[str, Parameter(help="The app of Celery, as module:attribute. Its module is imported.")],
    /,
    *,
    to: To = None,
    apply: Apply = False,
    at: At = None,
    unknown_ok: Unknown = False,
    target: Shared[Target],
    show: Shared[Show],
) -> int:
    """Show what a Celery app's beat_schedule becomes: the same times, others at named instants, or refused and why.

    Celery's own library reads it, with what add_periodic_task adds; nothing is sent. Its own crontab is the proof.
    --to writes a task for each entry, --apply puts schedules that call the tasks by their names in Celery. Exits with
    3, and writes nothing, if a time differs and no rule says why.
    """
    return carry_out(read_celery_app(app), Carry(to, apply, at, unknown_ok), target, show)


@movein.command
def huey(
    app: Annotated[str, Parameter(help="The Huey, as module:attribute. Its module is imported, and has its tasks.")],
    /,
    *,
    tz: Zone = None,
    to: To = None,
    apply: Apply = False,
    at: At = None,
    unknown_ok: Unknown = False,
    target: Shared[Target],
    show: Shared[Show],
) -> int:
    """Show what the periodic tasks of a Huey become: the same times, or refused and why.

    Huey's own library has made them; no consumer starts, and its own crontab is the proof. --to writes a task for each,
    --apply puts schedules that call tasks named as the functions. Exits with 3, and writes nothing, if a time differs
    and no rule says why.
    """
    return carry_out(read_huey_app(app, tz), Carry(to, apply, at, unknown_ok), target, show)


@movein.command
def k8s(
    file: Annotated[Path, Parameter(help="CronJobs as YAML or JSON: a manifest, or kubectl get cronjobs -o yaml.")],
    /,
    *,
    tz: Zone = None,
    to: To = None,
    apply: Apply = False,
    at: At = None,
    unknown_ok: Unknown = False,
    target: Shared[Target],
    show: Shared[Show],
) -> int:
    """Show what the CronJobs of Kubernetes become: the same times, or refused and why.

    rota starts no pods: --to writes a task for each CronJob, whose body you write; --apply puts schedules that call
    tasks of the same names. Exits with 3, and writes nothing, if a time differs and no rule says why.
    """
    return carry_out(read_cronjob_file(file, tz), Carry(to, apply, at, unknown_ok), target, show)


@movein.command
def systemd(
    *paths: Annotated[Path, Parameter(help="Timer units, or folders with them: /etc/systemd/system.")],
    tz: Zone = None,
    to: To = None,
    apply: Apply = False,
    at: At = None,
    unknown_ok: Unknown = False,
    target: Shared[Target],
    show: Shared[Show],
) -> int:
    """Show what timers of systemd become: the same times, or refused and why.

    `systemd-analyze calendar` is the proof. --to writes a task for each timer, which starts its service and waits for
    its end; --apply puts schedules that call tasks named as the timers. Exits with 3, and writes nothing, if a time
    differs and no rule says why.
    """
    return carry_out(read_timer_files(paths, tz), Carry(to, apply, at, unknown_ok), target, show)


@movein.command
def status(
    kind: Annotated[Kind, Parameter(help="What the source is.")],
    where: Annotated[str, Parameter(help="Where it is, as with rota import.")],
    /,
    *,
    tz: Zone = None,
    system: SystemCrontab = None,
    target: Shared[Target],
    show: Shared[Show],
) -> None:
    """Show both sides: which schedules of a source are in the store, when each fires next, and from when on."""
    match kind:
        case "crontab":
            source = read_crontab_file(Path(where), tz, system)
        case "k8s":
            source = read_cronjob_file(Path(where), tz)
        case "huey":
            source = read_huey_app(where, tz)
        case "systemd":
            source = read_timer_files([Path(where)], tz)
        case _:
            source = _READERS[kind](where)
    show_status(source, target, show)


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


def read_jobs(reference: str) -> Source:
    from rota.movein.apscheduler import read_scheduler

    return read_scheduler(lambda: load_object(reference), reference, datetime.now(UTC))


def read_celery_app(reference: str) -> Source:
    from rota.movein.celery_app import read_celery

    return read_celery(load_object(reference), reference, datetime.now(UTC))


def read_huey_app(reference: str, tz: str | None) -> Source:
    from rota.movein.huey_app import read_huey

    zone, zone_from = (_checked(tz), "--tz") if tz else zone_of_machine()
    return read_huey(load_object(reference), reference, datetime.now(UTC), zone, zone_from or "this machine")


def read_timer_files(paths: Sequence[Path], tz: str | None) -> Source:
    from rota.movein.timers import read_timers

    zone, zone_from = (_checked(tz), "--tz") if tz else zone_of_machine()
    return read_timers(paths, datetime.now(UTC), zone, zone_from)


def read_cronjob_file(file: Path, tz: str | None) -> Source:
    from rota.movein.cronjobs import read_cronjobs

    return read_cronjobs(file, _checked(tz) if tz else None)


def read_beat_db(where: str) -> Source:
    from rota.movein.beat_db import read_beat
    from rota.movein.database import by_url, of_django

    now = datetime.now(UTC)
    if "://" in where:
        return read_beat(by_url(where), where.rpartition("@")[2], now)
    settings = load_object(where)
    own = getattr(settings, "DJANGO_CELERY_BEAT_TZ_AWARE", True)
    zone = str(getattr(settings, "CELERY_TIMEZONE", None) or getattr(settings, "TIME_ZONE", None) or "UTC")
    return read_beat(of_django(settings), where, now, None if own else zone)


_READERS: Mapping[str, Callable[[str], Source]] = {
    "apscheduler": read_jobs,
    "beat-db": read_beat_db,
    "celery": read_celery_app,
}
