"""Leases of a worker whose interpreter is held: kept by the renewer, and only while that worker is at work."""

import asyncio
import os
import select
import signal
import socket
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from rota import Rota, Run, State
from rota.domain.lifecycle import Succeeded, decide
from rota.domain.run import Lease
from rota.engine import renewer
from rota.engine.slate import Line, RenewerAt, Slate
from rota.engine.tuning import Tuning
from rota.testing.contract.stage import new_run
from tests.processes import PATIENCE, Process

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the renewer judges its workers as Linux shows them")

LEASE = 2.0


def url_in(folder: Path) -> str:
    return f"sqlite:///{folder}/rota.db"


def worker(folder: Path, *options: str, silence: float = 600) -> Process:
    env = {"ROTA_URL": url_in(folder), "ROTA_SILENCE": str(silence), "ROTA_LEASE": str(LEASE)}
    return Process("-m", "rota", "-A", "tests.engine.renewer_tasks:app", "worker", *options, env=env)


def flag_in(folder: Path) -> Path:
    flag = folder / "flag"
    flag.write_bytes(b"\0")
    return flag


def let_go(flag: Path) -> None:
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
    app, flag = Rota(url_in(tmp_path)), flag_in(tmp_path)
    with worker(tmp_path) as first:
        first.wait_for("the renewer knows the leases")
        os.kill(renewers(first)[0], signal.SIGKILL)
        first.wait_for(r"the renewer \(pid \d+\) was killed by SIGKILL; another starts")
        first.wait_for("the renewer knows the leases", times=2)
        async with app.client():
            run = await app.submit("hold", flag=str(flag))
            first.wait_for("CALLED")
            with worker(tmp_path) as second:  # would take the run
                second.wait_for("rota worker:")
                seen = await until(app, run.id, lambda run: (run.until or 0) > (run.claimed_at or 0) + 6 * LEASE)
                assert (seen.state, seen.fence, seen.losses) == (State.RUNNING, 1, 0)
                let_go(flag)
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
    app, flag = Rota(url_in(tmp_path)), flag_in(tmp_path)
    with worker(tmp_path, silence=1) as first, worker(tmp_path, "--tasks", "rest") as other:
        first.wait_for("the renewer knows the leases")
        other.wait_for("rota worker:")
        async with app.client():
            run = await app.submit("hold", flag=str(flag))
            first.wait_for("its leases are let go")
            seen = await until(app, run.id, lambda run: run.losses == 1)
            assert seen.state is State.QUEUED
        let_go(flag)


async def test_a_stopped_worker_is_not_taken_for_a_busy_one(tmp_path: Path) -> None:
    app = Rota(url_in(tmp_path))
    flag = tmp_path / "pipe"
    os.mkfifo(flag)
    with worker(tmp_path) as first:
        first.wait_for("rota worker:")
        async with app.client():
            run = await app.submit("rest", flag=str(flag))
            first.wait_for("CALLED")
            first.signal(signal.SIGSTOP)
            with worker(tmp_path) as second:
                second.wait_for("CALLED")
                assert (await run.refresh()).losses == 1


def test_worker_and_renewer_end_together(tmp_path: Path) -> None:
    with worker(tmp_path, "--processes", "2") as parent:
        parent.wait_for("worker holder-[0-9a-f]* started", times=2)
        (one,) = renewers(parent)
        assert "sqlite" not in Path(f"/proc/{one}/cmdline").read_text(), "the url goes by the line"
        life = os.pidfd_open(one)
        parent.signal(signal.SIGKILL)
        assert ended(life), "the renewer outlives its parent"
        os.close(life)
        assert parent.output.count("renewer started") == 1


async def test_only_leases_that_the_worker_told_are_renewed_and_an_ended_run_is_no_alarm(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """By the parts of the renewer, in this process, on a worker that has been silent since it said hello."""
    app = Rota(url_in(tmp_path))
    async with app.client() as client:
        store = await client.store()
        await store.put([new_run("work") for _ in range(3)])
        told, kept_back, over = (await store.claim("me", 1, ["work"], 3, LEASE)).runs
        other = await store.claim("other", 1, ["work"], 1, LEASE)
        assert other.runs == []
        slate = Slate(3)
        for lease in (told.lease, Lease(kept_back.id, kept_back.fence - 1 or 99, "me"), over.lease):
            slate.take(lease, time.monotonic())
        await store.settle([decide(over, Succeeded())])
        before = [run.until or 0.0 for run in (told, kept_back)]

        address = f"rota-test-{os.getpid()}-{time.monotonic_ns()}"
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
            listener.bind("\0" + address)
            listener.listen()
            at = RenewerAt(address, url_in(tmp_path), "rota.stores:connect")
            line = Line(at, slate, "me", Tuning(lease=LEASE))
            line.start()
            silent = renewer.accept(listener)
            assert silent is not None
            assert renewer.heard(silent, silent.line.fileno())
            await asyncio.to_thread(renewer.look, silent, time.monotonic() + LEASE)
            line.stop()
            silent.close()
        after = [(await app.handle(run.id).refresh()).until or 0.0 for run in (told, kept_back)]
    assert after[0] > before[0]
    assert after[1] == before[1]
    assert "cannot renew" not in capfd.readouterr().err
