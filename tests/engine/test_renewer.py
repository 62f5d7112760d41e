"""Leases of a worker whose interpreter is held: kept by the renewer, and only while that worker is at work."""

import asyncio
import os
import select
import signal
import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from rota import Rota, Run, State
from rota.store import WorkerSeen
from tests.processes import PATIENCE, Process

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the renewer judges its workers as Linux shows them")

LEASE = 4.0
"""Seconds. A renewal is due half a lease before the end, so a machine may stall for two seconds."""


def url_in(folder: Path) -> str:
    return f"sqlite:///{folder}/rota.db"


def worker(folder: Path, *options: str, silence: float = 600, lease: float = LEASE) -> Process:
    env = {"ROTA_URL": url_in(folder), "ROTA_SILENCE": str(silence), "ROTA_LEASE": str(lease)}
    return Process("-m", "rota", "-A", "tests.engine.renewer_tasks:app", "worker", "-v", *options, env=env)


@contextmanager
def flag_in(folder: Path) -> Generator[Path]:
    """Set at the end, whatever happened: a process whose interpreter is held does not see that its parent has ended."""
    flag = folder / "flag"
    flag.write_bytes(b"\0")
    try:
        yield flag
    finally:
        release(flag)


def release(flag: Path) -> None:
    with flag.open("r+b") as file:  # in its place: the memory of others ends where the file does
        file.write(b"\1")


def renewers(process: Process, count: int = 1) -> list[int]:
    """The pids of the first so many renewers of a command."""
    lines = process.wait_for(r"renewer started \(pid=\d+\)", times=count)
    return [int(line.partition("pid=")[2].rstrip(")\n")) for line in lines]


def ended(pidfd: int) -> bool:
    poll = select.poll()
    poll.register(pidfd, select.POLLIN)
    return bool(poll.poll(PATIENCE * 1000))


async def until(app: Rota, id: str, holds: Callable[[Run], bool]) -> Run:
    async with asyncio.timeout(PATIENCE):
        while not holds(run := await app.handle(id).refresh()):
            await app.client().news(0.1)
    return run


async def test_a_call_that_holds_the_interpreter_keeps_its_run_although_a_renewer_was_killed(tmp_path: Path) -> None:
    app = Rota(url_in(tmp_path))
    with worker(tmp_path) as first, flag_in(tmp_path) as flag:
        first.wait_for("the renewer knows the leases")
        os.kill(renewers(first)[0], signal.SIGKILL)
        first.wait_for(r"the renewer \(pid \d+\) was killed by SIGKILL; another starts")
        first.wait_for("the renewer knows the leases", times=2)
        async with app.client():
            run = await app.submit("hold", flag=str(flag))
            first.wait_for("CALLED")
            with worker(tmp_path) as second:  # would take the run
                second.wait_for("rota worker:")
                seen = await until(app, run.id, lambda run: (run.until or 0) > (run.claimed_at or 0) + 2 * LEASE)
                assert (seen.state, seen.fence, seen.losses) == (State.RUNNING, 1, 0)
                release(flag)
                assert await run.result(timeout=PATIENCE) == "done"
                second.signal(signal.SIGTERM)
                assert second.wait() == 0
            first.signal(signal.SIGTERM)
            assert first.wait() == 0
    written = first.output + second.output
    assert written.count("CALLED") == 1
    assert "a call holds its interpreter: its leases are renewed" in first.output
    assert "no longer ours" not in written
    assert "cannot renew" not in written


async def test_a_worker_that_is_silent_for_too_long_is_let_go(tmp_path: Path) -> None:
    app = Rota(url_in(tmp_path))
    with worker(tmp_path, silence=1) as first, worker(tmp_path, "--tasks", "rest") as other, flag_in(tmp_path) as flag:
        first.wait_for("the renewer knows the leases")
        other.wait_for("rota worker:")
        async with app.client():
            run = await app.submit("hold", flag=str(flag))
            first.wait_for("its leases are no longer renewed")
            seen = await until(app, run.id, lambda run: run.losses == 1)
            assert seen.state is State.QUEUED


def stopped(process: Process) -> None:
    """Until all of its threads stand: what they had under way is done, and nothing more comes."""
    process.signal(signal.SIGSTOP)
    os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WNOWAIT)


STOPPED_LEASE = 6.0


async def seconds_to_rescue(folder: Path) -> float:
    """From the stop of a worker, busy when its renewer last looked, to the rescue of its run by the store's stamps.
    The clock of the store is this host's."""
    app = Rota(url_in(folder))
    with (
        worker(folder, lease=STOPPED_LEASE) as first,
        worker(folder, "--tasks", "rest", lease=STOPPED_LEASE) as second,
        flag_in(folder) as flag,
    ):
        first.wait_for("the renewer knows the leases")
        second.wait_for("rota worker:")
        async with app.client():
            run = await app.submit("hold", flag=str(flag))
            first.wait_for("its leases are renewed")
            stopped(first)
            stopped_at = time.time()
            (lost,) = (await until(app, run.id, lambda run: run.losses == 1)).attempts
    return lost.ended_at - stopped_at


async def test_the_run_of_a_stopped_worker_is_rescued(tmp_path: Path) -> None:
    assert await seconds_to_rescue(tmp_path) > 0


@pytest.mark.soak  # a bound in seconds needs a machine that is not busy
async def test_the_run_of_a_stopped_worker_is_rescued_within_one_and_a_half_leases(tmp_path: Path) -> None:
    assert await seconds_to_rescue(tmp_path) <= 1.5 * STOPPED_LEASE


async def test_a_worker_that_is_killed_takes_no_lease_of_its_brother_with_it(tmp_path: Path) -> None:
    app = Rota(url_in(tmp_path))
    with worker(tmp_path, "--processes", "2", "--concurrency", "1") as parent, flag_in(tmp_path) as flag:
        parent.wait_for("the renewer knows the leases", times=2)
        async with app.client():
            runs = [await app.submit("hold", flag=str(flag)) for _ in range(2)]
            parent.wait_for("its leases are renewed", times=2)
            pids = [int(line.rpartition(" ")[2]) for line in parent.wait_for("CALLED by", times=2)]
            holders = {(await run.refresh()).worker: run for run in runs}
            store = await app.client().store()
            workers = {seen.report.pid: seen.name for seen in (await store.rows(WorkerSeen)).items}
            brother = holders[workers[pids[1]]]
            before = (await brother.refresh()).until or 0.0
            os.kill(pids[0], signal.SIGKILL)
            seen = await until(app, brother.id, lambda run: (run.until or 0) > before + LEASE)
            assert (seen.state, seen.fence, seen.losses) == (State.RUNNING, 1, 0)


def test_a_renewer_ends_with_the_process_that_started_it(tmp_path: Path) -> None:
    """At once, not at its next look: with this lease, looks are ten minutes apart."""
    with worker(tmp_path, "--processes", "2", lease=3600) as parent:
        parent.wait_for("the renewer knows the leases", times=2)
        (one,) = renewers(parent)
        told = Path(f"/proc/{one}/cmdline").read_text()
        assert "sqlite" not in told, "the url goes by the line"
        assert told.endswith("\0text\0debug\0")
        life = os.pidfd_open(one)
        parent.signal(signal.SIGKILL)
        assert ended(life), "the renewer outlives its parent"
        os.close(life)
        assert parent.output.count("renewer started") == 1
