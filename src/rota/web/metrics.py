"""Metrics: the whole fleet from one read of the store. Workers open no port.

Counters come from the totals of the store, which never fall. Labels are names of tasks and schedules, never runs, keys,
workers or hosts; beyond MOST_SERIES names the rest is added up as `_other`.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib.metadata import version
from platform import python_version

from msgspec import Struct
from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, InfoMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from rota.client.fleet import is_alive
from rota.domain.run import Run, State
from rota.domain.schedule import Schedule
from rota.domain.spec import TaskSpec
from rota.errors import StoreError
from rota.store import ENDINGS, Depth, Reads, RunQuery, Tally, WorkerSeen, bucket, bucket_seconds

MOST_SERIES = 500
"""The most tasks or schedules that a metric names."""
OTHER = "_other"
FIRST_DUE = 100
"""So many queued runs, the first due first, are looked at for the oldest one of each task."""
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
    first_due: Sequence[Run] = ()


async def read(store: Reads) -> Seen:
    stats = await store.stats(None)
    return Seen(
        now=stats.now,
        totals=[stat.tally for stat in stats.items],
        depths=(await store.depths()).items,
        specs=(await store.rows(TaskSpec)).items,
        schedules=(await store.rows(Schedule)).items,
        workers=[worker for worker in (await store.rows(WorkerSeen)).items if is_alive(worker, stats.now)],
        first_due=(await store.runs(RunQuery(state=[State.QUEUED], order="due", limit=FIRST_DUE))).runs,
    )


async def registry(store: Reads, own: Iterable[Metric] = ()) -> CollectorRegistry:
    """Return the metrics of this moment, with those of this process. Without a store that answers, only that it does
    not."""
    try:
        seen = list(_all(await read(store)))
    except StoreError:
        seen = []
    up = _gauge("rota_store_up", "Whether the store answers.", float(bool(seen)))
    found = CollectorRegistry(auto_describe=False)
    found.register(_Collected([_build(), up, *own, *seen]))
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


def of_streams(streams: int, resyncs: Mapping[str, int]) -> Iterator[Metric]:
    """Return the metrics of the streams of events of this process."""
    yield _gauge("rota_event_streams", "Streams of events that are open.", streams)
    told = CounterMetricFamily("rota_resyncs", "How often streams were told to read again.", labels=["reason"])
    for reason, count in sorted(resyncs.items()):
        told.add_metric([reason], count)
    yield told


def _all(seen: Seen) -> Iterator[Metric]:
    yield from _runs(seen)
    yield from _waiting(seen)
    yield from _schedules(seen)
    yield from _workers(seen)


def _runs(seen: Seen) -> Iterator[Metric]:
    known = _named([tally.task for tally in seen.totals])
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
    lost = CounterMetricFamily("rota_leases_lost", "Leases that lapsed: their workers died or froze.", labels=["task"])
    for task, count in sorted(_summed(known, ((tally.task, tally.lost) for tally in seen.totals)).items()):
        lost.add_metric([task], count)
    yield lost
    yield _histogram(
        "rota_run_duration_seconds",
        "How long calls took.",
        known,
        [(tally.task, tally.durations, tally.ran) for tally in seen.totals],
    )
    yield _histogram(
        "rota_run_wait_seconds",
        "How long runs waited from their due time to their start.",
        known,
        [(tally.task, tally.waits, tally.waited) for tally in seen.totals],
    )


def _histogram(
    name: str, text: str, known: Callable[[str], str], of: Sequence[tuple[str, dict[int, int], int]]
) -> Metric:
    counts: defaultdict[str, defaultdict[int, int]] = defaultdict(lambda: defaultdict(int))
    sums: defaultdict[str, int] = defaultdict(int)
    for task, found, microseconds in of:
        sums[known(task)] += microseconds
        for index, count in found.items():
            counts[known(task)][index] += count
    family = HistogramMetricFamily(name, text, labels=["task"])
    for task in sorted(sums):
        inside = counts[task]
        buckets = [(f"{bucket_seconds(k):g}", sum(n for at, n in inside.items() if at <= k)) for k in BOUNDS]
        family.add_metric([task], [*buckets, ("+Inf", sum(inside.values()))], sums[task] / 1e6)
    return family


def _waiting(seen: Seen) -> Iterator[Metric]:
    known = _named([depth.task for depth in seen.depths])
    for state in ("queued", "running", "paused"):
        family = GaugeMetricFamily(f"rota_runs_{state}", f"Runs that are {state} now.", labels=["task"])
        for task, count in sorted(_summed(known, ((one.task, getattr(one, state)) for one in seen.depths)).items()):
            family.add_metric([task], count)
        yield family
    yield _gauge("rota_tasks_paused", "Tasks that a person has paused.", sum(spec.paused for spec in seen.specs))
    yield from _unserved(seen, known)


def _unserved(seen: Seen, known: Callable[[str], str]) -> Iterator[Metric]:
    """Yield what a depth does not tell: whether runs that could start do not, and whether anybody could start them."""
    off = {spec.name for spec in seen.specs if spec.starts_nothing}
    ages = dict.fromkeys((known(depth.task) for depth in seen.depths), 0.0)
    served = dict.fromkeys(ages, 0)
    for run in seen.first_due:
        if not run.needs and run.task not in off:
            ages[known(run.task)] = max(ages.get(known(run.task), 0.0), seen.now - run.due_at)
    for name in {task for worker in seen.workers for task in worker.tasks}:
        if known(name) in served:
            served[known(name)] += sum(name in worker.tasks for worker in seen.workers)
    oldest = GaugeMetricFamily("rota_oldest_due_seconds", "For how long a run could have started.", labels=["task"])
    workers = GaugeMetricFamily("rota_task_workers", "Workers that are alive and know the task.", labels=["task"])
    for task in sorted(ages):
        oldest.add_metric([task], ages[task])
        workers.add_metric([task], served.get(task, 0))
    yield from (oldest, workers)


def _schedules(seen: Seen) -> Iterator[Metric]:
    states = {"active": 0, "paused": 0, "ended": 0}
    for schedule in seen.schedules:
        states["paused" if schedule.paused else "ended" if schedule.ended else "active"] += 1
    counted = GaugeMetricFamily("rota_schedules", "Schedules by state.", labels=["state"])
    for state, count in states.items():
        counted.add_metric([state], count)
    yield counted
    coming = GaugeMetricFamily("rota_schedule_next_timestamp_seconds", "When it fires next.", labels=["schedule"])
    for schedule in seen.schedules[:MOST_SERIES]:
        if schedule.next_at is not None and not schedule.paused:
            coming.add_metric([schedule.id], schedule.next_at)
    yield coming


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


def _named(names: Sequence[str]) -> Callable[[str], str]:
    """Return how a metric calls a task: by its name, or `_other` if there are too many."""
    shown = frozenset(sorted(set(names))[:MOST_SERIES])
    return lambda name: name if name in shown else OTHER


def _summed(known: Callable[[str], str], pairs: Iterable[tuple[str, int]]) -> dict[str, int]:
    found: defaultdict[str, int] = defaultdict(int)
    for name, count in pairs:
        found[known(name)] += count
    return found
