"""Stats: what workers counted, minute by minute; quantiles come from the buckets of a histogram."""

from collections.abc import Mapping

from msgspec import Struct

from rota.store import Stat, bucket_seconds
from rota.views.values import iso


class StatView(Struct, frozen=True):
    """One minute of one task. `wait_p50` and the like are seconds within which that share of the runs stayed: the upper
    end of a bucket; None if there were none."""

    minute: str
    task: str
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


def stat_view(stat: Stat) -> StatView:
    tally = stat.tally
    return StatView(
        minute=iso(stat.minute * 60.0),
        task=tally.task,
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
    )


def quantile(counts: Mapping[int, int], share: float) -> float | None:
    """Return the upper end of the bucket within which `share` of the counted values stay."""
    wanted, seen = sum(counts.values()) * share, 0
    for index in sorted(counts):
        seen += counts[index]
        if seen >= wanted:
            return round(bucket_seconds(index), 6)
    return None
