"""`python -m benchmarks.servers [--quick]`: what holds on SQLite, measured on Redis and PostgreSQL of this machine."""

import argparse
import sys
from collections.abc import Sequence

from benchmarks.crowded import crowded
from benchmarks.fan_out import fan_out
from benchmarks.figures import Cost
from benchmarks.flows import flows
from benchmarks.full_limit import full_limit
from benchmarks.growth import growth
from benchmarks.lateness import lateness
from benchmarks.report import SERVERS, costs, machine, write_section
from benchmarks.schedules import due_at_once
from benchmarks.settings import Settings
from benchmarks.shares import shares
from benchmarks.traffic import traffic
from storekit.servers import PostgresServer, RedisServer, Server, postgres_of_machine, redis_of_machine

REDIS = {"appendonly": "no"}
POSTGRES = {"fsync": "on", "full_page_writes": "on", "shared_buffers": "256MB", "max_wal_size": "4GB"}


def tell(what: str) -> None:
    print(what, file=sys.stderr, flush=True)


def on_both(settings: Settings, server: Server) -> list[Cost]:
    found: list[Cost] = []
    for name, measure in (("a long queue", growth), ("a crowded key", crowded), ("schedules", due_at_once)):
        tell(f"  {name}")
        found += measure(settings, server.url)
    tell("  a full named limit")
    found += full_limit(settings, server.url)
    tell("  a fan-out")
    found += fan_out(settings, server.url)
    tell("  flows")
    return found + flows(settings, server)


def on_redis(settings: Settings) -> tuple[str, list[Cost]]:
    program = redis_of_machine()
    if program is None:
        raise SystemExit("there is no redis-server of version 7 or newer in PATH")
    with RedisServer(program, REDIS, tcp=True) as server:
        found = on_both(settings, server)
        tell("  lateness")
        found += lateness(settings, server.url)
        tell("  traffic")
        found += traffic(server, settings.cap)
        tell("  shares")
        return f"Redis {program.version}, without persistence", found + shares(settings, server.url)


def on_postgres(settings: Settings) -> tuple[str, list[Cost]]:
    if not postgres_of_machine():
        raise SystemExit("there is no PostgreSQL of this machine's packages")
    program = postgres_of_machine()[0]
    with PostgresServer(program, POSTGRES, tcp=True) as server:
        return f"PostgreSQL {program.version}, with fsync", on_both(settings, server)


def text(parts: Sequence[tuple[str, Sequence[Cost]]], settings: Settings) -> str:
    grids = [f"{name}:\n\n{costs(found, 'rota').markdown()}" for name, found in parts]
    how = f"`python -m benchmarks.servers`, {machine()} {settings.rounds} rounds."
    return "\n\n".join([how, *grids])


def measure(settings: Settings, keep: bool) -> None:
    """On both servers, where this machine has them."""
    parts = []
    for name, there, measured in (
        ("Redis", redis_of_machine(), on_redis),
        ("PostgreSQL", postgres_of_machine(), on_postgres),
    ):
        if not there:
            tell(f"{name}: no server on this machine, so it is not measured")
            continue
        tell(name)
        parts.append(measured(settings))
    found = text(parts, settings)
    print(found)
    if keep and parts:
        write_section(SERVERS, found)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.servers", description=__doc__)
    parser.add_argument("--rounds", type=int, default=1, help="medians are over so many")
    parser.add_argument("--quick", action="store_true", help="a fast look that leaves RESULTS.md as it is")
    chosen = parser.parse_args()
    settings = Settings(rounds=chosen.rounds)
    measure(settings.quick() if chosen.quick else settings, keep=not chosen.quick)
    return 0


if __name__ == "__main__":
    sys.exit(main())
