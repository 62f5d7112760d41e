"""rota beside Huey: every measure is taken of one right after the other, round by round, as machines have moods."""

from collections import defaultdict
from collections.abc import Callable

from benchmarks.figures import Versus
from benchmarks.settings import Settings
from benchmarks.stage import stage

ROTA, HUEY, MEMORY = "rota-sqlite", "huey-sqlite", "rota-memory"

Samples = dict[tuple[str, str], list[float]]
"""By measure and peer, one per round."""


def compare(settings: Settings, tell: Callable[[str], None]) -> list[Versus]:
    samples: Samples = defaultdict(list)
    for n in range(1, settings.rounds + 1):
        for measure in (submit_one_by_one, submit_in_bulk_and_drain, wait_for_another_process, wait_in_one_process):
            tell(f"round {n} of {settings.rounds}: {measure.__name__.replace('_', ' ')}")
            for peer in (ROTA, HUEY, MEMORY):
                for name, value in measure(peer, settings).items():
                    samples[name, peer].append(value)
    return [
        _versus(samples, "submit one by one", "runs/s"),
        _versus(samples, "submit in bulk", "runs/s", goal=4.0),
        _versus(samples, "drain by one process", "runs/s", goal=4.0),
        _versus(samples, "drain by two processes", "runs/s"),
        _versus(samples, "latency, two processes, p50", "ms"),
        _versus(samples, "latency, two processes, p99", "ms"),
        _versus(samples, "latency, one process, p50", "ms"),
        _versus(samples, "latency, one process, p99", "ms"),
    ]


def _versus(samples: Samples, name: str, unit: str, goal: float | None = None) -> Versus:
    rota, huey, memory = (samples[name, peer] for peer in (ROTA, HUEY, MEMORY))
    return Versus(name, unit, "less" if unit == "ms" else "more", rota, huey, memory, goal)


def submit_one_by_one(peer: str, settings: Settings) -> dict[str, float]:
    with stage(peer, settings.runs) as fresh:
        return {"submit one by one": fresh.perform("submit", runs=settings.runs, cap=settings.cap)["rate"]}


def submit_in_bulk_and_drain(peer: str, settings: Settings) -> dict[str, float]:
    """One full queue serves three measures: how fast it filled, and how fast two copies of it drain."""
    with stage(peer, settings.runs) as full:
        filled = full.perform("submit_many", runs=settings.runs, cap=settings.cap)
        found = {"submit in bulk": filled["rate"]}
        if peer == MEMORY:
            found["drain by one process"] = full.perform("drain", runs=settings.runs)["rate"]
            return found
        for workers, name in ((1, "drain by one process"), (2, "drain by two processes")):
            with stage(peer, settings.runs, like=full) as copy:
                found[name] = copy.drain(int(filled["runs"]), workers, settings.cap)
    return found


def wait_for_another_process(peer: str, settings: Settings) -> dict[str, float]:
    if peer == MEMORY:
        return {}
    with stage(peer, settings.paced) as fresh, fresh.worker():
        waited = fresh.perform("pace", runs=settings.paced, gap=settings.gap, here=False)
    return {f"latency, two processes, {p}": value for p, value in waited.items()}


def wait_in_one_process(peer: str, settings: Settings) -> dict[str, float]:
    with stage(peer, settings.paced) as fresh:
        waited = fresh.perform("pace", runs=settings.paced, gap=settings.gap, here=True)
    return {f"latency, one process, {p}": value for p, value in waited.items()}
