"""What it costs a worker to be observed: processor time of a drain with metrics of OpenTelemetry, with its spans, with
the metrics of calls of a service, and without any of them.

Each drain has a process of its own, because a program sets its providers once. Time of the processor, not of the clock:
a busy machine changes little of it.
"""

import asyncio
import subprocess
import sys
import time

from benchmarks.figures import Cost
from benchmarks.peer_rota import SEATS
from benchmarks.settings import Settings
from benchmarks.turns import fresh_url
from rota import Rota
from rota.app.core import core_of

RUNS = 10_000
WAYS = {
    "rota_call_seconds": ("calls",),
    "metrics": ("metrics",),
    "a tenth of the spans": ("tenth",),
    "all spans": ("spans",),
    "all spans, those of the store too": ("spans", "store"),
}


def observed(settings: Settings, server: str | None = None, runs: int = RUNS) -> list[Cost]:
    """Return processor time for a run, beside a drain in the same round that nobody observes."""
    seconds: dict[str, list[float]] = {name: [] for name in ("", *WAYS)}
    for turn in range(settings.rounds):
        names = list(seconds)
        for name in names if turn % 2 else reversed(names):
            with fresh_url(server) as url:
                seconds[name].append(_measured(url, runs, *WAYS.get(name, ())))
    plain = [1e6 * each / runs for each in seconds[""]]
    return [
        Cost(f"a run with {name}, beside one without", "µs", [1e6 * each / runs for each in seconds[name]], plain)
        for name in WAYS
    ]


def _measured(url: str, runs: int, *ways: str) -> float:
    command = [sys.executable, "-m", "benchmarks.observed", "drain", url, str(runs), *ways]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()[-1])


def _provide(ways: list[str]) -> None:
    """Set up providers as a program does; what they gather goes nowhere."""
    if "metrics" in ways:
        from opentelemetry import metrics
        from opentelemetry.sdk.metrics import MeterProvider
        from opentelemetry.sdk.metrics.export import InMemoryMetricReader

        metrics.set_meter_provider(MeterProvider([InMemoryMetricReader()]))
    if "spans" in ways or "tenth" in ways:
        from opentelemetry import trace
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.sampling import ParentBasedTraceIdRatio

        trace.set_tracer_provider(TracerProvider(ParentBasedTraceIdRatio(0.1 if "tenth" in ways else 1.0)))


async def _drain(url: str, runs: int, ways: list[str]) -> float:
    """Seconds of the processor from the start of the worker until all runs have ended."""
    app = Rota(url, concurrency=SEATS, trace_store="store" in ways)
    if "calls" in ways:
        from rota.web.own_metrics import OwnMetrics

        core_of(app).hooks.observe = OwnMetrics().ended
    left, all_called = runs, asyncio.Event()

    @app.task
    async def noop(i: int) -> None:
        nonlocal left
        left -= 1
        if not left:
            all_called.set()

    for first in range(0, runs, 1000):
        await app.submit_many([noop.bind(i) for i in range(first, min(runs, first + 1000))])
    began = time.process_time()
    async with app:
        await all_called.wait()
        while any(depth.queued or depth.running for depth in (await app.client().depths()).items):
            await app.client().news(0.05)
    return time.process_time() - began


if __name__ == "__main__":
    if sys.argv[1:2] == ["drain"]:
        _provide(sys.argv[4:])
        print(asyncio.run(_drain(sys.argv[2], int(sys.argv[3]), sys.argv[4:])))
    else:
        for cost in observed(Settings(rounds=3)):
            print(
                cost.name, f"{cost.ratio}", [round(each) for each in cost.cost], [round(each) for each in cost.measure]
            )
