"""`python -m benchmarks [--quick]`, or `--harness PATH [its options]`."""

import argparse
import sys
from pathlib import Path

import msgspec

from benchmarks import report, servers, triggers
from benchmarks.batches import batch
from benchmarks.compare import compare
from benchmarks.crowded import crowded
from benchmarks.fan_out import fan_out
from benchmarks.full_limit import full_limit
from benchmarks.growth import growth
from benchmarks.guard import guard
from benchmarks.handover import hand_over
from benchmarks.harness import run_harness
from benchmarks.http import http
from benchmarks.kept import kept
from benchmarks.lone import lone_submit
from benchmarks.memory import memory
from benchmarks.observed import observed
from benchmarks.schedules import schedules
from benchmarks.settings import Settings
from benchmarks.torture import torture

GRIDS = {"batch": batch, "hand-over": hand_over, "http": http, "kept": kept, "torture": torture}
"""Parts that are measured alone, and answer a table."""


def tell(what: str) -> None:
    print(what, file=sys.stderr, flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__, allow_abbrev=False)
    parser.add_argument("--rounds", type=int, default=Settings().rounds, help="medians are over so many")
    parser.add_argument("--runs", type=int, default=Settings().runs, help="runs to submit and to drain")
    parser.add_argument("--quick", action="store_true", help="a fast look that leaves RESULTS.md as it is")
    parser.add_argument(
        "--part",
        choices=["batch", "hand-over", "http", "kept", "pages", "torture"],
        help="measure this alone; its own options follow",
    )
    parser.add_argument("--guard", action="store_true", help="fail if rota has become slower; its own options follow")
    parser.add_argument("--harness", type=Path, metavar="PATH", help="run PATH/run.py on rota instead")
    chosen, more = parser.parse_known_args()
    if chosen.harness:
        return run_harness(chosen.harness.resolve(), more)
    if chosen.guard:
        return guard(more)
    if chosen.part == "pages":
        from benchmarks.pages import pages  # needs a browser

        print(pages(more))
        return 0
    if chosen.part in GRIDS:
        print(GRIDS[chosen.part](more).markdown())
        return 0
    if more:
        parser.error(f"unknown: {' '.join(more)}")
    settings = Settings(rounds=chosen.rounds, runs=chosen.runs)
    measure(settings.quick() if chosen.quick else settings, keep=not chosen.quick)
    return 0


def measure(settings: Settings, keep: bool) -> None:
    versus = compare(settings, tell)
    tell("a lone submit")
    costs = lone_submit(settings)
    tell("a long queue")
    costs += growth(settings)
    tell("a crowded key")
    costs += crowded(settings)
    tell("a full named limit")
    costs += full_limit(settings)
    tell("memory")
    costs += memory(settings)
    tell("a fan-out")
    costs += fan_out(settings)
    tell("metrics and spans")
    costs += observed(settings)
    tell("schedules")
    costs += schedules(settings, tell)
    tell("triggers")
    speeds = triggers.triggers(settings.trigger_rounds)
    report.show(versus, costs)
    triggers.show(speeds)
    if keep:
        triggers.write(speeds)
        report.write(versus, costs, settings)
    servers.measure(msgspec.structs.replace(settings, rounds=1), keep)
    if keep:
        tell(f"written to {_shown(report.RESULTS)}")


def _shown(path: Path) -> str:
    return str(path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path.name)


if __name__ == "__main__":
    sys.exit(main())
