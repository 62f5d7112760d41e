"""The renewer's parts, in the process of the test: whom it takes for busy, and what it does while a store hangs."""

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from rota import Rota
from rota.domain.lifecycle import Succeeded, settlement_of
from rota.domain.run import Lease, Run
from rota.domain.tuning import Tuning
from rota.engine import renewer
from rota.engine.slate import RenewerAt, RenewerConnection, Slate
from rota.store import ClaimRequest, Store
from storekit.contract.stage import new_run
from tests.engine.renewer_side import SLOW, Slow, knowing, listening
from tests.processes import PATIENCE

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the renewer judges its workers as Linux shows them")

LEASE = 3600.0
"""So long that nothing here happens because time has passed: looks are ten minutes apart."""

CALLER = """
import signal, socket, sys, time
while time.process_time() < 0.03:
    pass
line = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
line.connect("\\0" + sys.argv[1])
signal.pause()
"""


@pytest.fixture(autouse=True)
def slow() -> Generator[None]:
    Slow.asked, Slow.go = threading.Event(), threading.Event()
    yield
    Slow.go.set()


@contextmanager
def caller() -> Generator[tuple[renewer.Client, "subprocess.Popen[bytes]"]]:
    """A process that has used the processor, has called the renewer, and is at rest."""
    with listening() as (listener, address), subprocess.Popen([sys.executable, "-c", CALLER, address]) as process:
        client = renewer.accept(listener)
        assert client is not None
        try:
            yield client, process
        finally:
            process.kill()
            client.close()


def stop(process: "subprocess.Popen[bytes]") -> None:
    process.send_signal(signal.SIGSTOP)
    assert os.WIFSTOPPED(os.waitpid(process.pid, os.WUNTRACED)[1])


def test_a_stopped_process_does_not_work_although_it_has_used_the_processor() -> None:
    with caller() as (client, process):
        stop(process)
        assert not client.works()
        assert client.cpu > 0
        client.cpu = 0
        process.send_signal(signal.SIGCONT)
        os.waitpid(process.pid, os.WCONTINUED)
        assert client.works(), "the same count, but not stopped"
        stop(process)
        client.works()
        assert not client.works(), "the processor was not used since"


def test_a_dead_process_does_not_work() -> None:
    with caller() as (client, process):
        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert not client.works(), "a zombie"
        process.wait()
        assert not client.works(), "no such pid"


def test_another_process_with_the_pid_of_a_dead_one_is_not_taken_for_it() -> None:
    with caller() as (client, process):
        process.kill()
        process.wait()
        client.pid, client.cpu = os.getpid(), 0  # as if this process had got the number
        assert not client.works()


async def claimed(store: Store, count: int) -> list[Run]:
    await store.put([new_run("work") for _ in range(count)])
    return (await store.claim(ClaimRequest("me", 1, ["work"], count, LEASE))).runs


def ending_slate(*leases: Lease) -> Slate:
    """Leases that are known to end at once."""
    slate = Slate(len(leases))
    for lease in leases:
        slate.take(lease, time.monotonic())
    return slate


async def until_of(app: Rota, run: Run) -> float:
    return (await app.handle(run.id).refresh()).until or 0.0


async def renewed(client: renewer.Client) -> None:
    renewer.look(client, time.monotonic())
    assert client.renewal is not None
    await asyncio.to_thread(client.renewal.join, PATIENCE)


async def test_only_leases_that_the_worker_told_are_renewed(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    app = Rota(f"sqlite:///{tmp_path}/rota.db")
    async with app.client() as client:
        told, kept_back = await claimed(await client.store(), 2)
        slate = ending_slate(told.lease, Lease(kept_back.id, kept_back.fence + 98, "me"))
        async with knowing(slate, app.backend.url, Tuning(lease=LEASE)) as worker:
            await renewed(worker)
        assert await until_of(app, told) > (told.until or 0.0)
        assert await until_of(app, kept_back) == kept_back.until
    assert capfd.readouterr().err == ""


async def test_a_run_that_is_settled_during_a_renewal_is_no_alarm(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    app = Rota(f"sqlite:///{tmp_path}/rota.db")
    async with app.client() as client:
        store = await client.store()
        held, over = await claimed(store, 2)
        slate = ending_slate(held.lease, over.lease)
        async with knowing(slate, app.backend.url, Tuning(lease=LEASE), opener=SLOW) as worker:
            renewer.look(worker, time.monotonic())
            assert await asyncio.to_thread(Slow.asked.wait, PATIENCE)
            await store.settle([settlement_of(over, Succeeded())])
            slate.leave(over.lease)
            Slow.go.set()
            assert worker.renewal is not None
            await asyncio.to_thread(worker.renewal.join, PATIENCE)
            assert worker.renewed_at > 0
        assert await until_of(app, held) > (held.until or 0.0)
    assert capfd.readouterr().err == ""


async def test_a_store_that_hangs_keeps_neither_other_workers_nor_the_end_waiting(tmp_path: Path) -> None:
    app = Rota(f"sqlite:///{tmp_path}/rota.db")
    async with app.client() as client:
        one, two = await claimed(await client.store(), 2)
        parent, its_end = os.pipe()
        slates = ending_slate(one.lease), ending_slate(two.lease)
        with listening() as (listener, address):
            lines = [
                RenewerConnection(RenewerAt(address, app.backend.url, opener), slate, "me", Tuning(lease=LEASE))
                for slate, opener in zip(slates, (SLOW, "rota.stores:connect"), strict=True)
            ]
            serving = threading.Thread(target=renewer.serve, args=(listener, parent), daemon=True)
            serving.start()
            lines[0].start()
            assert await asyncio.to_thread(Slow.asked.wait, PATIENCE)
            lines[1].start()
            async with asyncio.timeout(PATIENCE):
                while await until_of(app, two) == two.until:
                    await app.client().news(0.1)
            assert await until_of(app, one) == one.until, "its store still hangs"
            os.close(its_end)
            await asyncio.to_thread(serving.join, PATIENCE)
            assert not serving.is_alive()
            for line in lines:
                line.stop()
        os.close(parent)
    for slate in slates:
        slate.close()


async def test_the_first_look_is_at_once_also_on_a_machine_that_has_just_started() -> None:
    slate = Slate(1)
    slate.take(Lease("first", 1, "me"), 0.5)
    async with knowing(slate, "sqlite:///:memory:", Tuning(lease=LEASE)) as worker:
        assert worker.wanted(1.0) == {"first": 1}


async def test_a_torn_slot_spoils_neither_the_others_nor_the_renewer(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    slate = ending_slate(Lease("whole", 1, "me"), Lease("é", 2, "me"))
    async with knowing(slate, "sqlite:///:memory:", Tuning(lease=LEASE)) as worker:
        assert worker.wanted(time.monotonic()) == {"whole": 1, "é": 2}
        length = renewer.SLOT.size - 230 - 2
        torn = renewer.HEADER.size + renewer.SLOT.size + length
        slate._memory[torn : torn + 2] = b"\1\0"  # the first of the two bytes of its letter
        assert [fence for _, fence, _ in worker.leases()] == [1, 2]
        assert worker.leases()[0][0] == "whole"
        assert worker.memory is not None
        worker.memory.close()
        renewer.look(worker, time.monotonic() + LEASE)
    assert "ERROR rota: cannot read the leases of worker me" in capfd.readouterr().err


def test_the_renewer_logs_from_the_level_that_its_command_names(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    for form, least in (("text", "error"), ("json", "warning")):
        monkeypatch.setattr(renewer, "LOGS", [form, least])
        renewer.say("WARNING", f"as {form}")
    told = capfd.readouterr().err
    assert "as text" not in told
    assert '"level": "warning"' in told
