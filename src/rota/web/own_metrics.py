"""Metrics of this process: its requests, its streams of events, its calls of the store, what it has audited, and the
calls of its handlers, if it has any. Only the last have exemplars: a trace and a run to look at."""

import time
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, InfoMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.samples import Exemplar

from rota.domain.run import Run
from rota.domain.settlement import Settlement
from rota.errors import StoreError
from rota.store import bucket_seconds
from rota.web.labels import Labels
from rota.web.metrics import BOUNDS as CALL_BUCKETS

BOUNDS = (0.001, 0.004, 0.016, 0.0625, 0.25, 1.0, 4.0, 16.0)
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"})
CALL_BOUNDS = tuple(map(bucket_seconds, CALL_BUCKETS))
ELSEWHERE = "other"
"""The route, or the method, of a request that is in no table."""


class _Times:
    """How many calls took how long."""

    def __init__(self, bounds: Sequence[float] = BOUNDS) -> None:
        self._bounds = bounds
        self._counts = [0] * (len(bounds) + 1)
        self._sum = 0.0
        self._last: dict[int, tuple[str, str, float, float]] = {}
        """Of each bucket, the last call whose run is known: its run, its `traceparent`, its seconds, and when."""

    def add(self, seconds: float) -> None:
        self._sum += seconds
        self._counts[bisect_left(self._bounds, seconds)] += 1

    def add_call(self, seconds: float, run: str, trace: str) -> None:
        place = bisect_left(self._bounds, seconds)
        self._sum += seconds
        self._counts[place] += 1
        self._last[place] = run, trace, seconds, time.time()

    def add_all(self, other: "_Times") -> None:
        self._sum += other._sum
        self._counts = [one + more for one, more in zip(self._counts, other._counts, strict=True)]
        self._last |= other._last

    def add_to(self, family: HistogramMetricFamily, labels: list[str]) -> None:
        reached, buckets = 0, list[tuple[str, float] | tuple[str, float, Exemplar]]()
        names = (*(f"{bound:g}" for bound in self._bounds), "+Inf")
        for place, (bound, count) in enumerate(zip(names, self._counts, strict=True)):
            reached += count
            exemplar = self._exemplar(place)
            buckets.append((bound, reached) if exemplar is None else (bound, reached, exemplar))
        family.add_metric(labels, buckets, self._sum)

    def _exemplar(self, place: int) -> Exemplar | None:
        if place not in self._last:
            return None
        run, trace, seconds, at = self._last[place]
        return Exemplar({"trace_id": trace.split("-")[1], "run": run} if trace else {"run": run}, seconds, at)


class OwnMetrics:
    def __init__(self) -> None:
        self._requests: defaultdict[tuple[str, str, str], _Times] = defaultdict(_Times)
        self._verbs: defaultdict[str, _Times] = defaultdict(_Times)
        self._errors: Counter[tuple[str, str]] = Counter()
        self._audited: Counter[str] = Counter()
        self._calls: defaultdict[str, _Times] = defaultdict(lambda: _Times(CALL_BOUNDS))

    def answered(self, route: str | None, method: str, status: int, seconds: float) -> None:
        """`route` is the path in the table of routes; None if there is none."""
        labels = route or ELSEWHERE, method if method in METHODS else ELSEWHERE, str(status)
        self._requests[labels].add(seconds)

    def called(self, verb: str, seconds: float, error: BaseException | None) -> None:
        self._verbs[verb].add(seconds)
        if isinstance(error, StoreError):
            self._errors[verb, type(error).__name__] += 1

    def ended(self, run: Run, settlement: Settlement) -> None:
        """A call of this process has ended, if the process runs handlers."""
        if settlement.seconds is not None:
            self._calls[run.task].add_call(settlement.seconds, run.id, settlement.trace)

    def audited(self, action: str) -> None:
        self._audited[action] += 1

    def metrics(
        self, streams: int, resyncs: Mapping[str, int], store: dict[str, str], labels: Labels
    ) -> Iterator[Metric]:
        """`store`: the kind of the store, and the version of its server."""
        yield GaugeMetricFamily("rota_event_streams", "Streams of events that are open.", streams)
        told = CounterMetricFamily("rota_resyncs", "How often streams were told to read again.", labels=["reason"])
        for reason, count in sorted(resyncs.items()):
            told.add_metric([reason], count)
        requests = HistogramMetricFamily(
            "rota_http_request_seconds", "How long requests took.", labels=["route", "method", "status"]
        )
        for of, times in sorted(self._requests.items()):
            times.add_to(requests, list(of))
        verbs = HistogramMetricFamily("rota_store_seconds", "How long verbs of the store took here.", labels=["verb"])
        for verb, times in sorted(self._verbs.items()):
            times.add_to(verbs, [verb])
        errors = CounterMetricFamily("rota_store_errors", "Verbs of the store that failed.", labels=["verb", "error"])
        for (verb, error), count in sorted(self._errors.items()):
            errors.add_metric([verb, error], count)
        audited = CounterMetricFamily("rota_audit", "What people asked this process to change.", labels=["action"])
        for action, count in sorted(self._audited.items()):
            audited.add_metric([action], count)
        kind = InfoMetricFamily("rota_store", "The kind of the store, and the version of its server.")
        kind.add_metric([], store)
        yield from (told, requests, verbs, errors, audited, kind, self._called(labels))

    def _called(self, labels: Labels) -> Metric:
        found = HistogramMetricFamily("rota_call_seconds", "How long calls of this process took.", labels=["task"])
        calls = sorted(self._calls.items())
        known, shown = labels.named("task", (task for task, _ in calls)), dict[str, _Times]()
        for task, times in calls:
            shown.setdefault(known(task), _Times(CALL_BOUNDS)).add_all(times)
        for task, times in shown.items():
            times.add_to(found, [task])
        return found
