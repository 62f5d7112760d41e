"""Metrics: the whole fleet from one look at the store. Workers open no port.

Counters come from the totals of the store, which never fall. Labels are names of tasks and schedules, never runs, keys,
workers or hosts: see `web/labels.py`.
"""

import asyncio
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib.metadata import version
from platform import python_version

from msgspec import Struct
from msgspec.structs import replace
from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, InfoMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from rota.client.fleet import is_alive
from rota.domain.deadline import deadline_id
from rota.domain.decision import Reason
from rota.domain.schedule import Schedule
from rota.domain.spec import TaskSpec
from rota.errors import StoreError
from rota.store import (
    ENDINGS,
    Depth,
    DueCount,
    Reads,
    RowQuery,
    Tally,
    Total,
    What,
    WorkerSeen,
    bucket,
    bucket_seconds,
)
from rota.views.task_detail import knowing, oldest_due
from rota.web.labels import Labels
from rota.web.troubles import late_deadlines, open_breakers

SKIPS = frozenset(
    {
        *(Reason.DISABLED, Reason.ALREADY_QUEUED, Reason.ALREADY_RUNNING, Reason.ALREADY_DONE, Reason.RESTING),
        *(Reason.BREAKER, Reason.QUEUE_FULL, Reason.BUFFER_FULL, Reason.ID_CONFLICT, Reason.EXPIRED, Reason.MISSED),
        *(Reason.NO_ACTIVITY, Reason.SUPERSEDED),
    }
)
"""Why work that somebody or some schedule wanted was not done."""
UNWANTED = frozenset({Reason.ALREADY_DONE, Reason.DISABLED})
"""Why a tick needs no success: its period is done, or somebody has disabled the task."""
INTERVALS = 3
"""Ticks that enclose two whole intervals."""
MOST_TOTALS = 100_000
BOUNDS = tuple(bucket(4.0**power) for power in range(-4, 8))
"""The buckets that metrics show: every fourth of the store's, from 4 ms to 4.5 hours. Their bounds are exact."""


class Seen(Struct, frozen=True):
    """What one scrape reads of the store."""

    now: float
    totals: Sequence[Tally]
    depths: Sequence[Depth]
    specs: Sequence[TaskSpec]
    schedules: Sequence[Schedule]
    workers: Sequence[WorkerSeen]
    counts: Sequence[Total] = ()
    due: Sequence[DueCount] = ()
    breakers: Mapping[str, int] = {}
    """How many keys of each task are refused by an open breaker."""
    late: frozenset[str] = frozenset()
    """The deadlines, by their ids, whose last time has passed without a success."""


async def read(store: Reads) -> Seen:
    """Look at the store once: reads that are sent together share their way."""
    (stats, depths), (specs, schedules, workers, counts, due_counts) = await asyncio.gather(
        asyncio.gather(store.stats(None), store.depths()),
        asyncio.gather(
            store.rows(TaskSpec),
            store.rows(Schedule),
            store.rows(WorkerSeen),
            store.rows(Total, RowQuery(limit=MOST_TOTALS)),
            store.rows(DueCount, RowQuery(limit=MOST_TOTALS)),
        ),
    )
    seen = Seen(
        now=stats.now,
        totals=[stat.tally for stat in stats.items],
        depths=depths.items,
        specs=specs.items,
        schedules=schedules.items,
        workers=[worker for worker in workers.items if is_alive(worker, stats.now)],
        counts=counts.items,
        due=due_counts.items,
    )
    return replace(seen, breakers=await open_breakers(store, seen), late=await late_deadlines(store, seen.schedules))


async def registry(store: Reads, own: Iterable[Metric] = (), labels: Labels | None = None) -> CollectorRegistry:
    """Return the metrics of this moment, with those of this process. Without a store that answers, only that it does
    not."""
    labels = labels or Labels()
    try:
        seen = list(_all(await read(store), labels))
    except StoreError:
        seen = []
    up = _gauge("rota_store_up", "Whether the store answers.", float(bool(seen)))
    dropped = CounterMetricFamily("rota_series_dropped", "Names that are counted as _other.", labels=["metric"])
    for metric, count in sorted(labels.dropped.items()):
        dropped.add_metric([metric], count)
    found = CollectorRegistry(auto_describe=False)
    found.register(_Collected([_build(), up, dropped, *own, *seen]))
    return found


class _Collected(Collector):
    def __init__(self, metrics: Iterable[Metric]) -> None:
        self._metrics = list(metrics)

    def collect(self) -> Iterator[Metric]:
        return iter(self._metrics)


def _build() -> Metric:
    found = InfoMetricFamily("rota_build", "The version of rota that serves.")
    found.add_metric([], {"version": version("rota"), "python": python_version()})
    return found


def _all(seen: Seen, labels: Labels) -> Iterator[Metric]:
    yield from _runs(seen, labels)
    yield from _waiting(seen, labels)
    yield from _decided(seen, labels)
    yield from _schedules(seen, labels)
    yield from _ticks(seen, labels)
    yield from _workers(seen)


def _runs(seen: Seen, labels: Labels) -> Iterator[Metric]:
    known = labels.named("task", (tally.task for tally in seen.totals))
    endings: defaultdict[tuple[str, str], float] = defaultdict(float)
    for tally in seen.totals:
        for status in ENDINGS:
            endings[known(tally.task), status] += getattr(tally, status)
    ended = CounterMetricFamily("rota_runs", "Calls that ended, by how they ended.", labels=["task", "status"])
    for (task, status), count in sorted(endings.items()):
        ended.add_metric([task, status], count)
    yield ended
    claims = CounterMetricFamily("rota_claims", "Runs that workers have claimed.")
    claims.add_metric([], sum(sum(tally.waits.values()) for tally in seen.totals))
    yield claims
    rescued = [(tally.task, tally.lost) for tally in seen.totals]
    poisoned = [(total.name, total.count) for total in seen.counts if total.what == What.POISONED]
    about_tasks = (
        ("rota_leases_lost", "Leases that lapsed: their workers died or froze.", [*rescued, *poisoned]),
        ("rota_rescues", "Runs that wait again after their lease lapsed.", rescued),
        ("rota_poison", "Runs that failed because their workers died with them, again and again.", poisoned),
    )
    for name, text, pairs in about_tasks:
        family = CounterMetricFamily(name, text, labels=["task"])
        for task, count in sorted(_summed(known, [*((one.task, 0) for one in seen.totals), *pairs]).items()):
            family.add_metric([task], count)
        yield family
    for name, text, what in (
        ("rota_tick_conflicts", "Ticks that another worker had fired before.", What.CONFLICT),
        ("rota_settles_stale", "Endings that the store refused: their leases were lost.", What.STALE),
        ("rota_renewals_failed", "Leases that workers could not renew.", What.UNRENEWED),
    ):
        family = CounterMetricFamily(name, text)
        family.add_metric([], sum(total.count for total in seen.counts if total.what == what))
        yield family
    yield _histogram(
        "rota_run_duration_seconds",
        "How long calls took.",
        "task",
        known,
        [(tally.task, tally.durations, tally.ran) for tally in seen.totals],
    )
    yield _histogram(
        "rota_run_wait_seconds",
        "How long runs waited from their due time to their start.",
        "task",
        known,
        [(tally.task, tally.waits, tally.waited) for tally in seen.totals],
    )


def _histogram(
    name: str, text: str, label: str, known: Callable[[str], str], of: Iterable[tuple[str, Mapping[int, int], int]]
) -> Metric:
    counts: defaultdict[str, defaultdict[int, int]] = defaultdict(lambda: defaultdict(int))
    sums: defaultdict[str, int] = defaultdict(int)
    for task, found, microseconds in of:
        sums[known(task)] += microseconds
        for index, count in found.items():
            counts[known(task)][index] += count
    family = HistogramMetricFamily(name, text, labels=[label])
    for task in sorted(sums):
        inside = counts[task]
        buckets = [(f"{bucket_seconds(k):g}", sum(n for at, n in inside.items() if at <= k)) for k in BOUNDS]
        family.add_metric([task], [*buckets, ("+Inf", sum(inside.values()))], sums[task] / 1e6)
    return family


def _waiting(seen: Seen, labels: Labels) -> Iterator[Metric]:
    known = labels.named("task", (depth.task for depth in seen.depths))
    for state in ("queued", "running", "paused"):
        family = GaugeMetricFamily(f"rota_runs_{state}", f"Runs that are {state} now.", labels=["task"])
        for task, count in sorted(_summed(known, ((one.task, getattr(one, state)) for one in seen.depths)).items()):
            family.add_metric([task], count)
        yield family
    queues, due = labels.named("queue", (one.queue for one in seen.due)), Counter[tuple[str, str]]()
    for one in seen.due:
        due[known(one.task), queues(one.queue)] += one.count
    family = GaugeMetricFamily("rota_runs_due", "Runs that free workers could start now.", labels=["task", "queue"])
    for names, count in sorted(due.items()):
        family.add_metric(names, count)
    yield family
    yield _gauge("rota_tasks_paused", "Tasks that a person has paused.", sum(spec.paused for spec in seen.specs))
    yield from _unserved(seen, known)


def _unserved(seen: Seen, known: Callable[[str], str]) -> Iterator[Metric]:
    """Yield what a depth does not tell: whether runs that could start do not, and whether anybody could start them."""
    ages = dict.fromkeys((known(depth.task) for depth in seen.depths), 0.0)
    served = dict.fromkeys(ages, 0)
    for name, due_at in oldest_due(seen.due, seen.specs).items():
        ages[known(name)] = max(ages.get(known(name), 0.0), seen.now - due_at)
    for name, count in knowing(seen.workers).items():
        if known(name) in served:
            served[known(name)] += count
    oldest = GaugeMetricFamily("rota_oldest_due_seconds", "For how long a run could have started.", labels=["task"])
    workers = GaugeMetricFamily("rota_task_workers", "Workers that are alive and know the task.", labels=["task"])
    for task in sorted(ages):
        oldest.add_metric([task], ages[task])
        workers.add_metric([task], served.get(task, 0))
    yield from (oldest, workers)


def _decided(seen: Seen, labels: Labels) -> Iterator[Metric]:
    decided = [total for total in seen.counts if total.what == What.DECIDED]
    known = labels.named("task", (total.name for total in decided))
    submitted = CounterMetricFamily("rota_submitted", "Runs that were accepted.", labels=["task"])
    accepted = ((total.name, total.count) for total in decided if total.reason == Reason.ACCEPTED)
    for task, count in sorted(_summed(known, accepted).items()):
        submitted.add_metric([task], count)
    skips: defaultdict[tuple[str, str], int] = defaultdict(int)
    for total in decided:
        if total.reason in SKIPS:
            skips[known(total.name), total.reason] += total.count
    skipped = CounterMetricFamily("rota_task_skipped", "Work that was wanted and not done.", labels=["task", "reason"])
    for (task, reason), count in sorted(skips.items()):
        skipped.add_metric([task, reason], count)
    breakers = GaugeMetricFamily("rota_breakers_open", "Keys that an open breaker refuses.", labels=["task"])
    with_breaker = {total.name: 0 for total in decided if total.reason == Reason.BREAKER}
    for task, count in sorted(_summed(known, {**with_breaker, **seen.breakers}.items()).items()):
        breakers.add_metric([task], count)
    yield from (submitted, skipped, breakers)


def _schedules(seen: Seen, labels: Labels) -> Iterator[Metric]:
    states = {"active": 0, "paused": 0, "ended": 0}
    for schedule in seen.schedules:
        states["paused" if schedule.paused else "ended" if schedule.ended else "active"] += 1
    counted = GaugeMetricFamily("rota_schedules", "Schedules by state.", labels=["state"])
    for state, count in states.items():
        counted.add_metric([state], count)
    yield counted
    known = labels.named("schedule", (schedule.id for schedule in seen.schedules))
    shown = [one for one in seen.schedules if known(one.id) == one.id and not one.paused]
    coming = GaugeMetricFamily("rota_schedule_next_timestamp_seconds", "When it fires next.", labels=["schedule"])
    for schedule in shown:
        if schedule.next_at is not None:
            coming.add_metric([schedule.id], schedule.next_at)
    yield coming
    yield from _successes(seen, shown)
    late = GaugeMetricFamily("rota_flow_step_late", "Whether a step, or a task, is late.", labels=["flow", "step"])
    for schedule in shown:
        if schedule.deadline is not None:
            flow, _, step = schedule.id.removeprefix(deadline_id("")).partition("/")
            late.add_metric([flow, step], float(schedule.id in seen.late))
    yield late


def _successes(seen: Seen, shown: Sequence[Schedule]) -> Iterator[Metric]:
    """Yield when schedules last succeeded, and when the last success should have been at the earliest: at the third
    tick from the end, behind which two whole intervals have passed."""
    successes = {total.name: total.count for total in seen.counts if total.what == What.SUCCEEDED}
    fired = _summed(str, ((total.name, total.count) for total in seen.counts if total.what == What.FIRED))
    last = GaugeMetricFamily(
        "rota_schedule_last_success_timestamp_seconds",
        "When a run of it last succeeded; 0: never.",
        labels=["schedule"],
    )
    expected = GaugeMetricFamily(
        "rota_schedule_expected_success_timestamp_seconds",
        "Two whole intervals have passed since then: a run should have succeeded after it.",
        labels=["schedule"],
    )
    for schedule in shown:
        counted = fired.get(schedule.id, 0) >= INTERVALS  # else the last success may be older than the counts
        if schedule.deadline is None and (counted or schedule.id in successes):
            last.add_metric([schedule.id], successes.get(schedule.id, 0))
            wanted = [firing.nominal for firing in schedule.recent if firing.reason not in UNWANTED]
            if len(wanted) >= INTERVALS:
                expected.add_metric([schedule.id], wanted[-INTERVALS])
    yield from (last, expected)


def _ticks(seen: Seen, labels: Labels) -> Iterator[Metric]:
    fired = [total for total in seen.counts if total.what == What.FIRED]
    known = labels.named("schedule", (total.name for total in fired))
    counts: defaultdict[tuple[str, str], int] = defaultdict(int)
    for total in fired:
        counts[known(total.name), total.reason] += total.count
    ticks = CounterMetricFamily("rota_ticks", "Ticks, by what became of them.", labels=["schedule", "reason"])
    for (schedule, reason), count in sorted(counts.items()):
        ticks.add_metric([schedule, reason], count)
    yield ticks
    buckets: defaultdict[str, dict[int, int]] = defaultdict(dict)
    for total in seen.counts:
        if total.what == What.LATENESS and total.reason.isdecimal():
            buckets[total.name][int(total.reason)] = total.count
    sums = {total.name: total.count for total in seen.counts if total.what == What.LATE_BY}
    yield _histogram(
        "rota_tick_lateness_seconds",
        "How long after their time ticks were fired.",
        "schedule",
        known,
        [(name, found, sums.get(name, 0)) for name, found in buckets.items()],
    )


def _workers(seen: Seen) -> Iterator[Metric]:
    by_version: defaultdict[str, list[WorkerSeen]] = defaultdict(list)
    for worker in seen.workers:
        by_version[worker.report.version].append(worker)
    for name, text, count in (
        ("rota_workers", "Workers that are alive.", len),
        ("rota_seats", "Runs that these workers can have at once.", _sum_of("seats")),
        ("rota_seats_held", "Runs that these workers have.", _sum_of("leased")),
        ("rota_threads_overdue", "Calls that outlived their runs.", _sum_of("overdue")),
    ):
        family = GaugeMetricFamily(name, text, labels=["version"])
        for number, workers in sorted(by_version.items()):
            family.add_metric([number], count(workers))
        yield family
    newest = max((worker.seen_at for worker in seen.workers), default=0.0)
    yield _gauge("rota_heartbeat_timestamp_seconds", "When a worker was last heard of; 0: none is alive.", newest)


def _sum_of(field: str) -> Callable[[list[WorkerSeen]], int]:
    return lambda workers: sum(getattr(worker.report, field) for worker in workers)


def _gauge(name: str, text: str, value: float) -> Metric:
    return GaugeMetricFamily(name, text, value)


def _summed(known: Callable[[str], str], pairs: Iterable[tuple[str, int]]) -> dict[str, int]:
    found: defaultdict[str, int] = defaultdict(int)
    for name, count in pairs:
        found[known(name)] += count
    return found
