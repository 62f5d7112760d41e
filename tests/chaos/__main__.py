"""The command behind `make chaos`: play, check, print the figures; exit with 1 where a promise was broken."""

import argparse
import random
import sys
import tempfile
from pathlib import Path
from typing import get_args

from tests.chaos.places import StoreName
from tests.chaos.play import play


def main() -> int:
    parser = argparse.ArgumentParser(prog="make chaos", description=__doc__)
    parser.add_argument("--store", choices=get_args(StoreName), default="sqlite")
    parser.add_argument("--seconds", type=float, default=150.0)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--folder", type=Path, default=None, help="where the history and the logs are kept")
    given = parser.parse_args()
    seed = random.randrange(1_000_000) if given.seed is None else given.seed
    folder = given.folder or Path(tempfile.mkdtemp(prefix="rota-chaos-"))
    folder.mkdir(parents=True, exist_ok=True)
    print(f"chaos on {given.store} for {given.seconds:g} s, SEED={seed}; history and logs in {folder}", flush=True)
    outcome = play(given.store, given.seconds, seed, folder)
    for name, figure in outcome.figures.items():
        print(f"  {name:<46} {figure:>10}")
    for problem in outcome.problems[:50]:
        print(f"PROBLEM {problem}")
    print(f"{len(outcome.problems)} problems (SEED={seed})")
    return 1 if outcome.problems else 0


if __name__ == "__main__":
    sys.exit(main())
