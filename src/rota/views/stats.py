"""Stats: what workers counted, slot by slot; quantiles come from the buckets of a histogram."""

from collections.abc import Collection, Iterable, Mapping
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from rota.client.client import Client
from rota.store import DAY, HOUR, MINUTE, SLOTS_KEPT, Reply, Stat, Tally, added, bucket_seconds
from rota.views.values import iso

Every = Literal["minute", "hour", "day", "all"]
"""How long a slot is; "all": one slot for the whole time."""
GroupBy = Literal["task", "origin"]
BY_TASK: tuple[GroupBy, ...] = ("task",)
LENGTHS: dict[Every, int] = {"minute": MINUTE, "hour": HOUR, "day": DAY}
KEPT = {every: SLOTS_KEPT[length] for every, length in LENGTHS.items()} | {"all": SLOTS_KEPT[DAY]}
"""For how many minutes there are slots of each length."""


class StatView(Struct, frozen=True):
    """One slot of a group of runs. `minute` is when the slot begins. `task` and `origin` are None for runs of any.
    `wait_p50` and the like are seconds within which that share of the runs stayed: the upper end of a bucket; None if
    there were none. The seconds are sums."""

    minute: str
    task: str | None
    succeeded: int
    failed: int
    retried: int
    other: int
    wait_p50: float | None
    wait_p95: float | None
    run_p50: float | None
    run_p95: float | None
    wait_seconds: float
    run_seconds: float
    origin: str | None = None
    cancelled: int = 0
    snoozed: int = 0
    lost: int = 0


async def read_stats(client: Client, minutes: int, every: Every) -> Reply[Stat]:
    """Return the slots of the last `minutes`. Of the whole time, the slots are as short as the store still has them."""
    if every != "all":
        return await client.stats(minutes, LENGTHS[every])
    return await client.stats(minutes, next(length for length, kept in SLOTS_KEPT.items() if minutes <= kept))


def stat_views(stats: Iterable[Stat], by: Collection[GroupBy] = BY_TASK, whole: bool = False) -> list[StatView]:
    """Return a view for each slot and group; with `whole`, one for each group."""
    found: dict[tuple[int, str, str], Tally] = {}
    stats = list(stats)
    first = min((stat.minute for stat in stats), default=0)
    for stat in stats:
        task, origin = stat.tally.task if "task" in by else "", stat.tally.origin if "origin" in by else ""
        name = first if whole else stat.minute, task, origin
        found[name] = added(found.get(name), replace(stat.tally, task=task, origin=origin))
    return [
        _stat_view(minute, tally, task if "task" in by else None, origin if "origin" in by else None)
        for (minute, task, origin), tally in sorted(found.items())
    ]


def _stat_view(minute: int, tally: Tally, task: str | None, origin: str | None) -> StatView:
    return StatView(
        minute=iso(minute * 60.0),
        task=task,
        succeeded=tally.succeeded,
        failed=tally.failed,
        retried=tally.retried,
        other=tally.other,
        wait_p50=quantile(tally.waits, 0.5),
        wait_p95=quantile(tally.waits, 0.95),
        run_p50=quantile(tally.durations, 0.5),
        run_p95=quantile(tally.durations, 0.95),
        wait_seconds=tally.waited / 1e6,
        run_seconds=tally.ran / 1e6,
        origin=origin,
        cancelled=tally.cancelled,
        snoozed=tally.snoozed,
        lost=tally.lost,
    )


def quantile(counts: Mapping[int, int], share: float) -> float | None:
    """Return the upper end of the bucket within which `share` of the counted values stay."""
    wanted, seen = sum(counts.values()) * share, 0
    for index in sorted(counts):
        seen += counts[index]
        if seen >= wanted:
            return round(bucket_seconds(index), 6)
    return None
