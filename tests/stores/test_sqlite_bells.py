"""An SQLite store at rest: who is woken by a commit of another process, by what, and who is left alone."""

import asyncio
import os
import socket
import stat
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from rota import Rota
from rota.store import Hint, Store, WorkerSeen
from rota.stores.sqlite import SqliteBackend
from rota.stores.sqlite.bells import CROWD, Bells
from rota.testing.contract import Stage, new_run
from rota.testing.faults import FaultyBackend
from tests.processes import Process

NEVER = 3600.0
SUBMITTER = """
import asyncio, sys
from rota import Rota

async def main():
    app = Rota(sys.argv[1])
    async with app.client():
        print("ready", flush=True)
        sys.stdin.readline()
        await app.submit("greet")

asyncio.run(main())
"""


def quiet(path: Path, look: float = NEVER) -> SqliteBackend:
    """A backend whose workers never poll; by default it does not look for commits either."""
    backend = SqliteBackend(path)
    backend.poll, backend.look, backend.look_without_bell = NEVER, look, look
    return backend


def patient_app(backend: SqliteBackend | FaultyBackend) -> Rota:
    return Rota(backend, lease=NEVER)


async def idle(store: Store, workers: int) -> None:
    while len([seen for seen in (await store.rows(WorkerSeen)).items if seen.idle]) < workers:  # noqa: ASYNC110
        await asyncio.sleep(0)


async def told(hints: AsyncIterator[Hint]) -> Hint:
    """The next hint that is not the first look around."""
    while (hint := await anext(hints)).any_run:
        pass
    return hint


def folder(backend: SqliteBackend) -> Path:
    return Path(f"{backend.path}-bells")


def bells(backend: SqliteBackend) -> list[Path]:
    return list(folder(backend).iterdir())


class Ear:
    """Takes what a bell says, and keeps it."""

    def __init__(self) -> None:
        self.heard: list[Hint | None] = []
        self._news = asyncio.Event()

    def __call__(self, hint: Hint | None) -> None:
        self.heard.append(hint)
        self._news.set()

    async def has(self, hint: Hint | None) -> None:
        while hint not in self.heard:
            self._news.clear()
            await self._news.wait()


@pytest.mark.parametrize("workers", [1, 2, 8])
async def test_no_commit_makes_an_idle_worker_claim_unless_it_is_hinted(tmp_path: Path, workers: int) -> None:
    path, seen = tmp_path / "rota.db", quiet(tmp_path / "rota.db", look=0.001)
    counted = [FaultyBackend(quiet(path, look=0.001)) for _ in range(workers)]
    apps = [patient_app(backend) for backend in counted]
    async with SqliteBackend(path).open() as elsewhere, seen.open() as near, near.changes() as hints:
        for app in apps:
            await app.start()
        await idle(elsewhere, workers)
        for _ in range(20):
            await elsewhere.put([])  # a commit like any other: it moves the store's clock
            while not (await anext(hints)).any_run:
                pass
        claims = [backend.calls.count("claim") for backend in counted]
        for app in apps:
            await app.stop()
    assert all(1 <= count <= 2 for count in claims), f"the first, and one once it hears hints: {claims}"


async def test_the_submit_of_another_process_wakes_an_idle_worker_by_its_bell(tmp_path: Path) -> None:
    backend, called = quiet(tmp_path / "rota.db"), asyncio.Event()
    app = patient_app(backend)

    @app.task
    async def greet() -> None:
        called.set()

    with Process("-c", SUBMITTER, backend.url) as submitter:
        await asyncio.to_thread(submitter.wait_for, "ready")
        async with app, backend.open() as store:
            await idle(store, 1)
            submitter.say("go")
            async with asyncio.timeout(30):
                await called.wait()
        await asyncio.to_thread(submitter.wait)
    assert not folder(backend).exists(), "the last one takes the folder away"


async def test_an_ending_and_a_progress_are_rung_to_those_who_wait_for_runs(tmp_path: Path) -> None:
    here, there = quiet(tmp_path / "rota.db"), quiet(tmp_path / "rota.db")
    async with here.open() as near, there.open() as far, near.changes() as hints:
        stage = Stage(there, far)
        run = await stage.ended()
        assert await told(hints) == Hint(runs=frozenset({run.id}))
        many = [new_run("other", id=f"{number:05d}" + "x" * 30) for number in range(2000)]
        await far.put(many)
        for new in many[:3]:
            await stage.cancel(new)
            assert new.id in (await told(hints)).runs


async def test_more_runs_than_fit_into_a_ring_are_looked_for(tmp_path: Path) -> None:
    ear = Ear()
    (tmp_path / "rota.db").touch()
    bells, ringer = Bells(str(tmp_path / "rota.db")), Bells(str(tmp_path / "rota.db"))
    async with bells.hung(None, ear):
        ringer.ring(Hint(runs=frozenset(f"{number:05d}" + "x" * 30 for number in range(2000))), ())
        await ear.has(None)


async def test_a_crowd_of_rings_is_followed_by_a_look_since_some_may_be_lost(tmp_path: Path) -> None:
    ear = Ear()
    (tmp_path / "rota.db").touch()
    bells, ringer = Bells(str(tmp_path / "rota.db")), Bells(str(tmp_path / "rota.db"))
    async with bells.hung("ada", ear):
        for number in range(1000):
            ringer.ring(Hint(workers=frozenset({"ada"}), runs=frozenset({str(number)})), {"ada"})
        await ear.has(None)
    assert ear.heard.index(None) < CROWD


async def test_a_wish_rings_the_worker_that_holds_the_run_and_nobody_elses(tmp_path: Path) -> None:
    path = tmp_path / "rota.db"
    ada, bob, there = quiet(path), quiet(path), quiet(path)
    async with (
        ada.open() as near,
        bob.open() as beside,
        there.open() as far,
        near.changes("ada") as to_ada,
        beside.changes("bob") as to_bob,
    ):
        stage = Stage(there, far)
        run = await stage.running(worker="ada")
        await stage.cancel(run)
        assert await told(to_ada) == Hint(runs=frozenset({run.id}))
        await stage.claim("bob")
        await stage.put(new_run(id="for-bob"))
        assert await told(to_bob) == Hint(workers=frozenset({"bob"})), "the first that bob hears"


async def test_a_bell_that_is_lost_is_made_up_for_by_looking(tmp_path: Path) -> None:
    here, there = quiet(tmp_path / "rota.db", look=0.01), quiet(tmp_path / "rota.db")
    async with here.open() as near, there.open() as far, near.changes("ada") as hints:
        for bell in bells(here):
            bell.unlink()
        await near.claim("ada", 1, ["greet"], 1, 30)
        await far.put([new_run()])
        while "ada" not in (hint := await anext(hints)).workers:
            pass
        assert hint.any_run, "seen, not rung"


async def test_where_no_bell_can_be_hung_looking_is_all_there_is(tmp_path: Path) -> None:
    here, there = quiet(tmp_path / "rota.db"), quiet(tmp_path / "rota.db")
    here.look_without_bell = 0.01
    (tmp_path / "rota.db-bells").write_text("in the way")
    async with here.open() as near, there.open() as far, near.changes("ada") as hints:
        await near.claim("ada", 1, ["greet"], 1, 30)
        await far.put([new_run()])
        while "ada" not in (await anext(hints)).workers:
            pass


async def test_the_bell_of_a_dead_process_is_taken_down_by_who_rings_it(tmp_path: Path) -> None:
    here, there = quiet(tmp_path / "rota.db"), quiet(tmp_path / "rota.db")
    async with here.open() as near, there.open() as far, near.changes() as hints:
        (alive,) = bells(here)
        dead = alive.with_name("any-0123456789abcdef")
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as bell:
            bell.bind(str(dead))
        run = await Stage(there, far).ended()
        assert run.id in (await told(hints)).runs
        assert bells(here) == [alive]


async def test_a_database_deep_in_the_tree_has_bells_too(tmp_path: Path) -> None:
    deep = tmp_path / ("d" * 120)
    here, there = quiet(deep / "rota.db"), quiet(deep / "rota.db")
    async with here.open() as near, there.open() as far, near.changes() as hints:
        run = await Stage(there, far).ended()
        assert run.id in (await told(hints)).runs


async def test_nobody_else_can_reach_a_bell(tmp_path: Path) -> None:
    backend = quiet(tmp_path / "rota.db")
    async with backend.open() as store, store.changes("ada"), store.changes():
        modes = [stat.S_IMODE(bell.stat().st_mode) for bell in bells(backend)]
        assert modes == [0o600, 0o600]
        assert stat.S_IMODE(folder(backend).stat().st_mode) == 0o700


async def test_a_forked_child_rings_the_bells_of_its_parent(tmp_path: Path) -> None:
    ear = Ear()
    (tmp_path / "rota.db").touch()
    bells = Bells(str(tmp_path / "rota.db"))
    rung = Hint(workers=frozenset({"ada"}), runs=frozenset({"child"}))
    async with bells.hung("ada", ear):
        bells.ring(Hint(workers=frozenset({"ada"})), {"ada"})
        child = os.fork()
        if child == 0:
            bells.ring(rung, {"ada"})
            os._exit(0)
        await asyncio.to_thread(os.waitpid, child, 0)
        await ear.has(rung)
    assert ear.heard == [rung], "its own rings are the hub's"
