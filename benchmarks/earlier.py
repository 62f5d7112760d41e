"""`python -m benchmarks.earlier TREE`: plain work on this tree, beside the same on an earlier one in the folder TREE.

`git worktree add ../before 6df3b49` makes such a folder. Both run in turns, on one server, with the same Python and the
same packages. All figures are microseconds of processor time per run, and bytes per pending run.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import uuid
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median

import benchmarks.plain_work
from storekit.servers import PostgresServer, RedisServer, postgres_of_machine, postgres_of_wheel, valkey_of_wheel

HERE = Path(__file__).resolve().parent.parent
STORES = ("memory", "sqlite", "valkey", "postgres")
POSTGRES = {"fsync": "off", "autovacuum": "off", "shared_buffers": "256MB", "max_wal_size": "4GB"}
"""Without autovacuum: it works when it likes, and its time would count for either tree."""

Found = dict[tuple[str, str, str], list[tuple[float, float]]]
"""By store, measure and tree: client and server, one pair per turn."""


@contextmanager
def servers(stores: list[str]) -> Iterator[dict[str, RedisServer | PostgresServer]]:
    """The servers that these stores need."""
    program = next(iter(postgres_of_machine()), None) or postgres_of_wheel()
    with RedisServer(valkey_of_wheel(), {"appendonly": "no"}) as valkey, PostgresServer(program, POSTGRES) as postgres:
        print(f"Valkey {valkey_of_wheel().version}, PostgreSQL {program.version}", file=sys.stderr)
        started: dict[str, RedisServer | PostgresServer] = {"valkey": valkey, "postgres": postgres}
        yield {name: server for name, server in started.items() if name in stores}


def turn(
    tree: Path, store: str, server: RedisServer | PostgresServer | None, runs: int, lone: int
) -> dict[str, list[float]]:
    """Measure one tree once. Nothing else uses the server meanwhile."""
    with tempfile.TemporaryDirectory(prefix="rota-bench-") as folder:
        place = f"{server.url}{'&' if '?' in server.url else '?'}" if server else ""
        url = {
            "memory": "memory://",
            "sqlite": f"sqlite:///{folder}/rota.db",
            "valkey": f"{place}namespace=b{uuid.uuid4().hex[:8]}",
            "postgres": f"{place}schema=b{uuid.uuid4().hex[:8]}",
        }[store]
        found = _child(tree, url, server.pid if server else 0, runs, lone, "drain")
        if isinstance(server, RedisServer):
            server.send("FLUSHALL", "SYNC")
            before = int(server.info("memory")["used_memory"])
            _child(tree, url, server.pid, runs, lone, "fill")
            pending = runs + lone + benchmarks.plain_work.WARM
            found["bytes"] = [0.0, (int(server.info("memory")["used_memory"]) - before) / pending]
            server.send("FLUSHALL", "SYNC")
    return found


def _child(tree: Path, url: str, pid: int, *rest: object) -> dict[str, list[float]]:
    command = [sys.executable, benchmarks.plain_work.__file__, url, str(pid), *map(str, rest)]
    environment = {**os.environ, "PYTHONPATH": str(tree / "src"), "PYTHONHASHSEED": "0"}
    done = subprocess.run(command, cwd=tree, env=environment, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{tree}: {' '.join(command)} failed:\n{done.stderr}")
    answer: dict[str, list[float]] = json.loads(done.stdout.splitlines()[-1])
    return answer


def markdown(found: Found) -> str:
    """The table of all that was measured: medians, and the ratio of each turn to the one beside it."""
    lines = [
        "| store | what | before: client + server | now | now, of before (least to most) |",
        "|---|---|--:|--:|--:|",
    ]
    for store, what in dict.fromkeys((store, what) for store, what, _ in found):
        before, now = found[store, what, "before"], found[store, what, "now"]
        ratios = sorted(sum(mine) / sum(its) for mine, its in zip(now, before, strict=True))
        cells = [_figures(before), _figures(now), f"{median(ratios):.2f}x ({ratios[0]:.2f} to {ratios[-1]:.2f})"]
        lines.append(f"| {store} | {what} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _figures(pairs: list[tuple[float, float]]) -> str:
    client, server = (median(pair[place] for pair in pairs) for place in (0, 1))
    both = median(sum(pair) for pair in pairs)
    return f"{client:.1f} + {server:.1f} = {both:.1f}" if client and server else f"{both:.1f}"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.earlier", description=__doc__)
    parser.add_argument("tree", type=Path, help="the folder of the earlier tree")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--runs", type=int, default=20_000)
    parser.add_argument("--lone", type=int, default=2_000, help="runs to submit one by one")
    parser.add_argument("--stores", nargs="+", choices=STORES, default=STORES)
    chosen = parser.parse_args()
    found: Found = defaultdict(list)
    trees = {"before": chosen.tree.resolve(), "now": HERE}
    with servers(chosen.stores) as started:
        for n in range(chosen.turns):
            for store in chosen.stores:
                for name in trees if n % 2 else reversed(trees):
                    figures = turn(trees[name], store, started.get(store), chosen.runs, chosen.lone)
                    for what, (client, server) in figures.items():
                        found[store, what, name].append((client, server))
            print(f"after turn {n + 1}:\n{markdown(found)}\n", file=sys.stderr, flush=True)
    print(markdown(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
