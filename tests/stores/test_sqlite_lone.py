"""A lone plain put in SQLite: a short way of its own, which leads where the long one does."""

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from rota.domain.overrides import Overrides
from rota.domain.policy import Limit
from rota.domain.spec import TaskSpec
from rota.stores.sqlite import SqliteBackend, lone, threads
from storekit.contract import Stage, new_run
from storekit.contract.stage import GREET

NOW = 4_000_000_000.0
"""Later than the clock of every machine here, so that two puts have one time."""
PUTS: dict[str, dict[str, Any]] = {
    "nothing": {},
    "a key": {"key": "k"},
    "a priority": {"priority": 7},
    "a delay": {"delay": 2.5},
    "a time to come": {"at": NOW + 9.0},
    "a time that has passed": {"at": 1.0},
    "headers": {"headers": {"a": "b"}},
    "a queue": {"queue": "images"},
    "a share": {"share": "s"},
    "an expiry": {"delay": 2.5, "expires_after": 60.0},
    "a unique key": {"key": "k", "unique": "active"},
    "a need": {"needs": ("+greet x",)},
}
SPECS = {
    "not declared": None,
    "declared": TaskSpec(GREET),
    "disabled": TaskSpec(GREET, enabled=False),
    "limited per key": TaskSpec(GREET, limit=Limit(per_key=1)),
}


class Still(SqliteBackend):
    """A backend whose clock stands still."""

    def _clock(self) -> float:
        return NOW


def contents(path: Path) -> dict[str, list[Any]]:
    with closing(sqlite3.connect(path)) as connection:
        tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        return {table: connection.execute(f"SELECT * FROM {table}").fetchall() for table in tables}


@pytest.mark.parametrize("spec", SPECS.values(), ids=SPECS)
@pytest.mark.parametrize("options", PUTS.values(), ids=PUTS)
async def test_a_lone_put_stores_what_it_stores_by_the_long_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spec: TaskSpec | None, options: dict[str, Any]
) -> None:
    """Twice each: the second put is one that was sent again."""
    new, found = new_run(**options), list[dict[str, list[Any]]]()
    for way in ("short", "long"):
        if way == "long":
            monkeypatch.setattr(lone, "LONGEST", -1)  # every body is too long for a put of this kind
        backend = Still(tmp_path / f"{way}.db")
        async with backend.open() as store:
            if spec is not None:
                await store.declare([spec])
            for id in ("first", new.id, new.id):  # the first one reads the specs: it goes the long way
                await store.put([new_run(**options, id=id)])
        found.append(contents(tmp_path / f"{way}.db"))
    short, long = found
    assert short == long


async def test_an_override_is_obeyed(tmp_path: Path) -> None:
    backend = SqliteBackend(tmp_path / "rota.db")
    async with backend.open() as store:
        stage = Stage(backend, store)
        await stage.put(new_run())
        await store.override(GREET, Overrides(enabled=False, version=1))
        assert [bool(await stage.admit(new_run())) for _ in range(2)] == [False, False]


async def test_a_run_behind_the_limit_of_its_key_is_parked(tmp_path: Path) -> None:
    backend = SqliteBackend(tmp_path / "rota.db")
    async with backend.open() as store:
        stage = Stage(backend, store)
        await store.declare([TaskSpec(GREET, limit=Limit(per_key=1))])
        await stage.running(new_run(key="k"))
        await stage.put(parked := new_run(key="k"))
        assert (await stage.see(parked)).parked


async def test_a_put_on_the_loop_reads_and_writes_by_six_statements(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(threads, "BRIEF", 3600.0)  # how fast this machine's disk is must not matter
    backend, seen = Still(tmp_path / "rota.db"), list[str]()
    async with backend.open() as store:
        await store.put([new_run()])
        connection: sqlite3.Connection = store._writer._connection  # type: ignore[attr-defined]
        connection.set_trace_callback(seen.append)
        await store.put([new_run()])
        connection.set_trace_callback(None)
    assert [text.split()[0] for text in seen] == ["BEGIN", "SELECT", "INSERT", "INSERT", "SELECT", "COMMIT"]


async def test_a_lone_put_wakes_an_idle_worker(tmp_path: Path) -> None:
    backend = SqliteBackend(tmp_path / "rota.db")
    async with backend.open() as store:
        stage = Stage(backend, store)
        await stage.put(new_run("other"))  # it reads the specs
        async with store.changes() as hints:
            await stage.claim("ada")
            await stage.put(new_run())
            async with asyncio.timeout(10):
                while "ada" not in (await anext(hints)).workers:
                    pass
