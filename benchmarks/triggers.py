"""The next fire of a cron expression, beside cronsim, in zones whose clocks change.

A part of `python -m benchmarks`; alone it is `python -m benchmarks.triggers`.

Both go from fire to fire, each from the one before. cronsim keeps its place between two fires; ours is asked anew with
`next_after`, as a scheduler asks. Taken in turns, medians over the rounds.
"""

import math
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from importlib.metadata import version
from statistics import median
from zoneinfo import ZoneInfo

from cronsim import CronSim
from msgspec import Struct
from rich.console import Console

from benchmarks.figures import short
from benchmarks.report import CRONSIM, Grid, machine, write_section
from benchmarks.settings import Settings
from rota.domain.triggers import Cron

GOAL = 5.0
START = datetime(2026, 1, 1, 12, tzinfo=UTC)
NAMED_SET: list[tuple[str, str, str, int]] = [
    # what it is, expression, zone, fires per round
    ("every minute", "* * * * *", "Europe/Paris", 300),
    ("every second", "* * * * * *", "America/New_York", 300),
    ("every ten seconds", "*/10 * * * * *", "Europe/Paris", 300),
    ("every five minutes", "*/5 * * * *", "America/New_York", 300),
    ("every quarter, by day", "*/15 7-22 * * *", "Europe/Paris", 300),
    ("every quarter, office hours", "*/15 9-17 * * 1-5", "Europe/London", 300),
    ("every hour", "0 * * * *", "Australia/Sydney", 300),
    ("every other hour", "30 */2 * * *", "America/Sao_Paulo", 300),
    ("four times a day", "0 0,6,12,18 * * *", "Europe/Riga", 300),
    ("daily", "0 9 * * *", "Europe/Paris", 300),
    ("daily, in the hour that changes", "30 2 * * *", "America/New_York", 300),
    ("daily, at a midnight that is left out", "0 0 * * *", "Africa/Cairo", 300),
    ("daily, half-hour change", "15 2 * * *", "Australia/Lord_Howe", 300),
    ("working days", "0 9 * * 1-5", "America/Los_Angeles", 300),
    ("weekly", "30 18 * * sun", "America/Santiago", 200),
    ("second Monday", "0 12 * * 1#2", "Europe/Berlin", 60),
    ("first of the month", "0 0 1 * *", "Europe/Madrid", 60),
    ("last day of the month", "30 23 L * *", "America/Toronto", 60),
    ("New Year's Eve", "59 23 31 12 *", "Europe/Paris", 20),
    ("29 February", "0 0 29 2 *", "Pacific/Auckland", 10),
]


class Speed(Struct, frozen=True):
    """Microseconds per fire, a sample per round each."""

    name: str
    expr: str
    zone: str
    rota: list[float]
    upcoming: list[float]
    cronsim: list[float]

    @property
    def ratio(self) -> float:
        """How many times faster than cronsim."""
        return median(self.cronsim) / median(self.rota)


def triggers(rounds: int) -> list[Speed]:
    return [_speed(name, expr, zone, fires, rounds) for name, expr, zone, fires in NAMED_SET]


def geometric_mean(rows: list[Speed]) -> float:
    return math.exp(sum(math.log(row.ratio) for row in rows) / len(rows))


def goals(rows: list[Speed]) -> list[str]:
    mean, slowest = geometric_mean(rows), min(rows, key=lambda row: row.ratio)
    return [
        f"{'Met' if mean >= GOAL else 'Missed'}: the next fire is found {short(mean)} times as fast as by cronsim "
        f"(geometric mean of {len(rows)}); the goal is {GOAL:g} times or more.",
        f"{'Met' if slowest.ratio >= 1 else 'Missed'}: slower on none; the least gain is {short(slowest.ratio)} times "
        f"({slowest.name}).",
    ]


def grid(rows: list[Speed]) -> Grid:
    heads = ("cron", "zone", "ratio", "rota, µs", "rota upcoming, µs", "cronsim, µs")
    return Grid(
        heads,
        [
            (
                f"{row.name}: `{row.expr}`",
                row.zone,
                f"{short(row.ratio)}x",
                short(median(row.rota)),
                short(median(row.upcoming)),
                short(median(row.cronsim)),
            )
            for row in rows
        ],
    )


def _speed(name: str, expr: str, zone: str, fires: int, rounds: int) -> Speed:
    cron, rules = Cron(expr, zone), ZoneInfo(zone)
    local = START.astimezone(rules)

    def step() -> list[datetime]:
        at: datetime | None = START
        return [at for _ in range(fires) if at and (at := cron.next_after(at))]

    def list_them() -> list[datetime]:
        return cron.upcoming(START, fires)

    def simulate() -> list[datetime]:
        found = CronSim(expr, local)
        return [next(found) for _ in range(fires)]

    speed = Speed(name, expr, zone, [], [], [])
    if not len(step()) == len(list_them()) == len(simulate()) == fires:
        raise RuntimeError(f"{expr} in {zone} does not fire {fires} times")
    for _ in range(rounds):
        speed.rota.append(_timed(step, fires))
        speed.upcoming.append(_timed(list_them, fires))
        speed.cronsim.append(_timed(simulate, fires))
    return speed


def _timed(run: Callable[[], object], fires: int) -> float:
    began = time.perf_counter()
    run()
    return (time.perf_counter() - began) / fires * 1e6


def show(rows: list[Speed]) -> None:
    console = Console(width=130)
    console.print(grid(rows).rich())
    for goal in goals(rows):
        console.print(goal)


def write(rows: list[Speed]) -> None:
    parts = (
        f"- {machine()} cronsim {version('cronsim')}.\n- {len(rows[0].rota)} rounds, of 10 to 300 fires each.",
        "\n".join(f"- {goal}" for goal in goals(rows)),
        grid(rows).markdown(),
        "Microseconds per fire. cronsim keeps its place between two fires; rota is asked anew with `next_after`, as a "
        "scheduler asks, or at once for all with `upcoming`.",
    )
    write_section(CRONSIM, "\n\n".join(parts))


def main() -> int:
    rows = triggers(Settings().trigger_rounds)
    show(rows)
    write(rows)
    return 0 if all(goal.startswith("Met") for goal in goals(rows)) else 1


if __name__ == "__main__":
    sys.exit(main())
