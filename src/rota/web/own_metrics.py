"""Metrics of this process: its requests, its streams of events, its calls of the store, and what it has audited."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, InfoMetricFamily
from prometheus_client.metrics_core import Metric

from rota.errors import StoreError

BOUNDS = (0.001, 0.004, 0.016, 0.0625, 0.25, 1.0, 4.0, 16.0)
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"})
ELSEWHERE = "other"
"""The route, or the method, of a request that is in no table."""


class _Times:
    """How many calls took how long."""

    def __init__(self) -> None:
        self._counts = [0] * (len(BOUNDS) + 1)
        self._sum = 0.0

    def add(self, seconds: float) -> None:
        self._sum += seconds
        self._counts[sum(seconds > bound for bound in BOUNDS)] += 1

    def add_to(self, family: HistogramMetricFamily, labels: list[str]) -> None:
        reached, buckets = 0, list[tuple[str, float]]()
        for bound, count in zip((*(f"{bound:g}" for bound in BOUNDS), "+Inf"), self._counts, strict=True):
            reached += count
            buckets.append((bound, reached))
        family.add_metric(labels, buckets, self._sum)


class OwnMetrics:
    def __init__(self) -> None:
        self._requests: defaultdict[tuple[str, str, str], _Times] = defaultdict(_Times)
        self._verbs: defaultdict[str, _Times] = defaultdict(_Times)
        self._errors: Counter[tuple[str, str]] = Counter()
        self._audited: Counter[str] = Counter()

    def answered(self, route: str | None, method: str, status: int, seconds: float) -> None:
        """`route` is the path in the table of routes; None if there is none."""
        labels = route or ELSEWHERE, method if method in METHODS else ELSEWHERE, str(status)
        self._requests[labels].add(seconds)

    def called(self, verb: str, seconds: float, error: BaseException | None) -> None:
        self._verbs[verb].add(seconds)
        if isinstance(error, StoreError):
            self._errors[verb, type(error).__name__] += 1

    def audited(self, action: str) -> None:
        self._audited[action] += 1

    def metrics(self, streams: int, resyncs: Mapping[str, int], store: str) -> Iterator[Metric]:
        """`store`: the kind of the store."""
        yield GaugeMetricFamily("rota_event_streams", "Streams of events that are open.", streams)
        told = CounterMetricFamily("rota_resyncs", "How often streams were told to read again.", labels=["reason"])
        for reason, count in sorted(resyncs.items()):
            told.add_metric([reason], count)
        requests = HistogramMetricFamily(
            "rota_http_request_seconds", "How long requests took.", labels=["route", "method", "status"]
        )
        for labels, times in sorted(self._requests.items()):
            times.add_to(requests, list(labels))
        verbs = HistogramMetricFamily("rota_store_seconds", "How long verbs of the store took here.", labels=["verb"])
        for verb, times in sorted(self._verbs.items()):
            times.add_to(verbs, [verb])
        errors = CounterMetricFamily("rota_store_errors", "Verbs of the store that failed.", labels=["verb", "error"])
        for (verb, error), count in sorted(self._errors.items()):
            errors.add_metric([verb, error], count)
        audited = CounterMetricFamily("rota_audit", "What people asked this process to change.", labels=["action"])
        for action, count in sorted(self._audited.items()):
            audited.add_metric([action], count)
        kind = InfoMetricFamily("rota_store", "The kind of the store.")
        kind.add_metric([], {"kind": store})
        yield from (told, requests, verbs, errors, audited, kind)
