"""An SQLite store at rest: who is woken by a commit of another process, by what, and who is left alone."""

import asyncio
import os
import socket
import stat
from collections.abc import AsyncIterator
from contextlib import chdir
from pathlib import Path

import pytest

from rota import Rota
from rota.store import ClaimRequest, Hint, Retention, Store, WorkerSeen
from rota.stores.sqlite import SqliteBackend
from rota.stores.sqlite.bells import CROWD, Bells
from storekit.contract import Stage, new_run
from storekit.faults import FaultyBackend
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


async def leave_a_bell(backend: SqliteBackend, worker: str) -> Path:
    """As the process of a worker does that is killed."""
    before = set(bells(backend))
    async with SqliteBackend(backend.path).open() as store, store.changes(worker):
        (bell,) = set(bells(backend)) - before
    leave_a_socket(bell)
    return bell


def leave_a_socket(path: Path) -> None:
    with chdir(path.parent), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as bell:
        bell.bind(path.name)  # the whole path may be too long for an address


async def seen_idle(store: Store) -> set[str]:
    return {seen.name for seen in (await store.rows(WorkerSeen)).items if seen.idle}


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
            await elsewhere.put([new_run("unknown")])  # no worker has this task
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


async def test_a_command_rings_the_worker_that_holds_the_run_and_nobody_elses(tmp_path: Path) -> None:
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
        await near.claim(ClaimRequest("ada", 1, ["greet"], 1, 30))
        await far.put([new_run()])
        while "ada" not in (hint := await anext(hints)).workers:
            pass
        assert hint.any_run, "seen, not rung"


async def test_where_no_bell_can_be_hung_looking_is_all_there_is(tmp_path: Path) -> None:
    here, there = quiet(tmp_path / "rota.db"), quiet(tmp_path / "rota.db")
    here.look_without_bell = 0.01
    (tmp_path / "rota.db-bells").write_text("in the way")
    async with here.open() as near, there.open() as far, near.changes("ada") as hints:
        await near.claim(ClaimRequest("ada", 1, ["greet"], 1, 30))
        await far.put([new_run()])
        while "ada" not in (await anext(hints)).workers:
            pass


async def test_the_bell_of_a_dead_process_is_taken_down_by_who_rings_it(tmp_path: Path) -> None:
    here, there = quiet(tmp_path / "rota.db"), quiet(tmp_path / "rota.db")
    async with here.open() as near, there.open() as far, near.changes() as hints:
        (alive,) = bells(here)
        dead = alive.with_name("any-0123456789abcdef")
        leave_a_socket(dead)
        run = await Stage(there, far).ended()
        assert run.id in (await told(hints)).runs
        assert bells(here) == [alive]


@pytest.mark.parametrize(("dead", "alive"), [("ada", "bob"), ("bob", "ada")])
async def test_another_is_hinted_in_the_place_of_a_worker_that_has_died(tmp_path: Path, dead: str, alive: str) -> None:
    here, there = quiet(tmp_path / "rota.db"), quiet(tmp_path / "rota.db")
    async with here.open() as near, near.changes(alive) as hints, asyncio.timeout(30):
        left = await leave_a_bell(here, dead)
        for worker in ("ada", "bob"):
            await near.claim(ClaimRequest(worker, 1, ["greet"], 1, 30))
        async with there.open() as far:
            await far.put([new_run()])  # and closes at once, as `rota submit` does
        assert alive in (await told(hints)).workers
        async with there.open() as far:
            await far.put([new_run()])
        assert left not in bells(here), "whichever of them was hinted first"
        assert await seen_idle(near) == set()


async def test_who_looks_after_runs_to_come_is_replaced_too(tmp_path: Path) -> None:
    here, there = quiet(tmp_path / "rota.db"), quiet(tmp_path / "rota.db")
    async with here.open() as near, near.changes("bob") as hints, asyncio.timeout(30):
        await leave_a_bell(here, "ada")
        await near.put([new_run("other", delay=60)])
        claim = await near.claim(ClaimRequest("ada", 1, ["greet", "other"], 1, 30))
        assert claim.wake is not None
        assert (await near.claim(ClaimRequest("bob", 1, ["other"], 1, 30))).wake is None, "ada wakes for it"
        async with there.open() as far:
            await far.put([new_run()])
        assert "bob" in (await told(hints)).workers, "not for the run, which bob does not know"
        assert (await near.claim(ClaimRequest("bob", 2, ["other"], 1, 30))).wake is not None


@pytest.mark.parametrize(("bare", "belled"), [("ada", "bob"), ("bob", "ada")])
async def test_a_worker_without_a_bell_is_not_taken_for_dead(tmp_path: Path, bare: str, belled: str) -> None:
    here, there = quiet(tmp_path / "rota.db"), quiet(tmp_path / "rota.db")
    async with here.open() as near, near.changes(belled):
        for worker in (bare, belled):
            await near.claim(ClaimRequest(worker, 1, ["greet"], 1, 30))
        async with there.open() as far:
            await far.put([new_run()])
        assert len(await seen_idle(near)) == 1, "one was hinted, and nobody beside"


async def test_a_worker_with_one_living_bell_is_alive(tmp_path: Path) -> None:
    here, there = quiet(tmp_path / "rota.db"), quiet(tmp_path / "rota.db")
    async with here.open() as near, near.changes("ada") as hints, asyncio.timeout(30):
        await leave_a_bell(here, "ada")
        for worker in ("ada", "bob"):
            await near.claim(ClaimRequest(worker, 1, ["greet"], 1, 30))
        async with there.open() as far:
            await far.put([new_run()])
        assert "ada" in (await told(hints)).workers
        assert await seen_idle(near) == {"bob"}


async def test_a_sweep_takes_down_what_dead_processes_have_left(tmp_path: Path) -> None:
    here, there = quiet(tmp_path / "rota.db"), quiet(tmp_path / "rota.db")
    async with here.open() as near, near.changes("bob") as hints, asyncio.timeout(30):
        (alive,) = bells(here)
        await leave_a_bell(here, "busy")
        await leave_a_bell(here, "ada")
        leave_a_socket(old := folder(here) / f".{alive.name}")
        os.utime(old, (0, 0))
        leave_a_socket(new := folder(here) / ".0123456789abcdef-0123456789abcdef")
        (other := folder(here) / "notes.txt").touch()
        for worker in ("ada", "bob"):
            await near.claim(ClaimRequest(worker, 1, ["greet"], 1, 30))
        async with there.open() as far:
            await far.sweep(Retention())
        assert set(bells(here)) == {alive, new, other}, "what is being hung refuses too, for a moment"
        assert (await told(hints)).workers == {"bob"}, "in place of ada"
        new.unlink()
        other.unlink()
    assert not folder(here).exists()


async def test_a_sweep_takes_the_folder_of_the_last_bell_away(tmp_path: Path) -> None:
    backend = quiet(tmp_path / "rota.db")
    async with backend.open() as store:
        async with store.changes():
            bell = await leave_a_bell(backend, "ada")
        assert bells(backend) == [bell]
        await store.sweep(Retention())
        assert not folder(backend).exists()


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
