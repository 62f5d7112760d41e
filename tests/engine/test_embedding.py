"""An engine in a process that has no event loop, or several: how it starts, stops, and ends with its process."""

import asyncio
import logging
import subprocess
import sys
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from rota import Rota, Run, RunCancelled, State
from rota.app import embedded
from rota.app.any_loop_lock import AnyLoopLock
from rota.app.core import core_of
from rota.errors import NotRunning


def make_app(url: str = "memory://") -> Rota:
    app = Rota(url)

    @app.task
    def double(n: int) -> int:
        return 2 * n

    return app


async def test_a_stop_that_fails_leaves_the_app_stopped() -> None:
    @asynccontextmanager
    async def broken() -> AsyncIterator[None]:
        yield
        raise ConnectionError("the pool does not close")

    app = Rota("memory://", resources=broken)

    @app.task
    async def quick() -> int:
        return 1

    for _ in range(2):  # it starts again, works, and fails in the same way
        await app.start()
        assert await (await quick.submit()).result(timeout=10) == 1
        with pytest.raises(ConnectionError, match="the pool"):
            await app.stop()
        assert not app.status().running
        await app.stop()  # the error is raised once


async def test_an_engine_is_healthy_as_soon_as_it_has_started() -> None:
    async with make_app() as app:
        assert await app.health()


def test_an_engine_whose_loop_was_closed_does_not_seem_to_run(caplog: pytest.LogCaptureFixture) -> None:
    app = make_app()
    asyncio.run(app.start())
    assert not app.status().running
    health = asyncio.run(app.health())
    assert (health.ok, health.claiming) == (False, False)
    assert "event loop" in str(health.problem)
    asyncio.run(app.stop())
    assert "was not stopped before its event loop was closed" in caplog.text
    assert asyncio.run(app.health()), "only a client now"

    loop = asyncio.new_event_loop()
    loop.run_until_complete(app.start())
    loop.close()  # whatever runs there is not even cancelled
    assert not app.status().running
    with app.running():  # clears the dead one away
        assert app.tasks["double"].submit_sync(2).result_sync(timeout=10) == 4
    assert not app.status().running


def test_an_engine_whose_worker_was_cancelled_does_not_seem_to_run() -> None:
    app = make_app()

    async def main() -> None:
        await app.start()
        (worker,) = [task for task in asyncio.all_tasks() if task.get_name() == "rota worker"]
        worker.cancel()
        await asyncio.wait((worker,))
        assert not app.status().running
        assert not await app.health()
        await app.start()
        assert app.status().running
        assert await (await app.tasks["double"].submit(2)).result(timeout=10) == 4
        await app.stop()

    asyncio.run(main())


def test_synchronous_code_runs_an_engine_and_has_its_results(tmp_path: Path) -> None:
    app = make_app(f"sqlite:///{tmp_path}/rota.db")
    before = threading.enumerate()  # other apps of this process may have a portal as well
    with app.running():
        app.start_sync()  # harmless
        assert app.tasks["double"].submit_sync(2).result_sync(timeout=10) == 4
        (portal,) = [t for t in threading.enumerate() if t.name == "rota-portal" and t not in before]
    portal.join(10)
    assert not portal.is_alive()
    assert not app.status().running
    app.stop_sync()
    with app.running(grace=0):
        assert app.tasks["double"].submit_sync(3).result_sync(timeout=10) == 6


async def test_on_an_event_loop_the_sync_forms_are_refused() -> None:
    app = make_app()
    for call in (app.start_sync, app.stop_sync, (await app.tasks["double"].submit(1)).refresh_sync):
        with pytest.raises(NotRunning, match="await the async form"):
            call()


def test_what_the_portal_started_it_can_stop() -> None:
    app = make_app()
    app.portal.call(app.start)
    assert app.tasks["double"].submit_sync(2).result_sync(timeout=10) == 4
    app.portal.call(app.stop)
    assert not app.status().running


def test_an_engine_is_stopped_from_another_event_loop_and_from_other_threads() -> None:
    app = make_app()
    app.start_sync()
    asyncio.run(app.stop())
    assert not app.status().running

    app.start_sync()
    threads = [threading.Thread(target=app.stop_sync) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert not any(thread.is_alive() for thread in threads)
    assert not app.status().running

    async def main() -> None:
        async with app:
            await asyncio.to_thread(app.stop_sync)
            assert not app.status().running

    asyncio.run(main())


def test_stopping_an_engine_whose_loop_stands_still_is_refused() -> None:
    app = make_app()
    with asyncio.Runner() as runner:
        runner.run(app.start())
        with pytest.raises(NotRunning, match="does not turn"):
            app.stop_sync()
        runner.run(app.stop())
    assert not app.status().running


def test_each_method_of_a_handle_has_a_form_for_synchronous_code() -> None:
    app = make_app()
    double = app.tasks["double"]
    run = double.submit_sync(2)
    assert run.pause_sync()
    assert run.refresh_sync().state is State.PAUSED
    assert run.resume_sync()
    assert run.cancel_sync("not wanted")
    with pytest.raises(RunCancelled, match=r"double [0-9a-f-]+ cancelled: not wanted$"):
        run.result_sync(timeout=10)
    chain, other = [(double.bind(1) >> double.bind(2)).submit_sync() for _ in range(2)]
    assert other.cancel_sync() == 2
    with app.running():
        assert run.retry_sync().result_sync(timeout=10) == 4
        assert chain.result_sync(timeout=10) == 4


async def test_a_turn_that_is_no_longer_wanted_goes_to_the_next() -> None:
    lock, order = AnyLoopLock(), list[int]()

    async def take(number: int) -> None:
        async with lock:
            order.append(number)

    async with lock:
        waiting = [asyncio.create_task(take(number)) for number in range(3)]
        await asyncio.sleep(0)
        waiting[0].cancel()
    waiting[1].cancel()  # its turn has come, but it has not begun
    await asyncio.wait(waiting)
    assert order == [2]
    await take(3)
    assert order == [2, 3]


PROGRAM = """
import asyncio, logging, os, sys, threading
from rota import Context, Rota

logging.basicConfig(level=logging.INFO)
app = Rota(sys.argv[1], grace=float(sys.argv[2]))
begun, stopping = threading.Event(), threading.Event()

class Stopping(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        if "is stopping" in record.getMessage():
            stopping.set()

logging.getLogger("rota").addHandler(Stopping())

@app.task
def quick() -> None: ...

@app.task
def slow() -> str:
    begun.set()
    assert stopping.wait(20)
    return "done"

@app.task
async def endless() -> None:
    begun.set()
    await asyncio.Event().wait()
"""


def run_program(code: str, folder: Path, grace: float = 30) -> tuple[Run, str]:
    """The last run of a program of its own, as it stands after its end, and what that program wrote."""
    url = f"sqlite:///{folder}/rota.db"
    command = [sys.executable, "-c", PROGRAM + code, url, str(grace)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    app = Rota(url)
    id = next(line for line in reversed(done.stdout.splitlines()) if line.startswith("run ")).removeprefix("run ")
    return app.handle(id).refresh_sync(), done.stdout + done.stderr


def test_what_runs_when_the_process_ends_is_waited_for(tmp_path: Path) -> None:
    run, written = run_program("app.start_sync(); print('run', slow.submit_sync().id); begun.wait()", tmp_path)
    assert run.state is State.SUCCEEDED, written
    assert "Error" not in written


def test_what_does_not_end_with_its_process_is_given_back(tmp_path: Path) -> None:
    run, written = run_program("app.start_sync(); print('run', endless.submit_sync().id); begun.wait()", tmp_path, 0.1)
    assert (run.state, run.losses) == (State.QUEUED, 0), written


FORKED = """
app.start_sync()
quick.submit_sync().result_sync(timeout=20)
pid = os.fork()
if pid == 0:
    assert not app.status().running, "a child is only a client"
    app.stop_sync()
    own = app.task(name="own")(slow.fn)  # the parent's engine does not know it
    app.start_sync()
    assert app.status().running
    print("run", own.submit_sync().id, flush=True)
    begun.wait()
    sys.exit(0)  # its own engine ends with it
code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
assert code == 0, code
assert app.status().running
import multiprocessing
unused = multiprocessing.get_context("fork").Process(target=int)  # it ends as a process does, and says nothing
unused.start()
unused.join()
assert unused.exitcode == 0
app.stop_sync()
"""


def test_a_forked_child_runs_an_engine_of_its_own(tmp_path: Path) -> None:
    run, written = run_program(FORKED, tmp_path)
    assert run.state is State.SUCCEEDED, written
    assert written.count("was forked from one whose engine runs") == 1


INTERRUPTED = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)

def interrupt():
    stopping.wait()
    os.kill(os.getpid(), signal.SIGINT)

app.start_sync()
print("run", endless.submit_sync().id)
begun.wait()
threading.Thread(target=interrupt, daemon=True).start()
"""


def test_ctrl_c_ends_the_grace_at_the_end_of_a_process(tmp_path: Path) -> None:
    run, written = run_program(INTERRUPTED, tmp_path, 1000)
    assert (run.state, run.losses) == (State.QUEUED, 0), written


def test_an_engine_whose_store_does_not_answer_is_tried_again_until_the_stop(
    unused_tcp_port: int, caplog: pytest.LogCaptureFixture
) -> None:
    app, log, stopped = make_app(f"redis://127.0.0.1:{unused_tcp_port}"), logging.getLogger("rota.test"), Stopped(2)
    embedded.start(app, log, stopped, grace=3.0)
    lines = [record.getMessage() for record in caplog.records if record.name == "rota.test"]
    assert len(lines) == 2
    assert all(line.startswith("the engine cannot start yet, next try in ") for line in lines)
    assert app.status().running is False
    embedded.limit_grace(app, 10.0)
    assert core_of(app).tuning.grace == 3.0


def test_a_stop_that_comes_while_the_engine_starts_finds_it() -> None:
    app, stopped = make_app(), threading.Event()
    plain = app.start_sync

    def start_sync() -> None:
        plain()
        stopped.set()

    app.start_sync = start_sync  # type: ignore[method-assign]
    embedded.start(app, logging.getLogger("rota.test"), stopped)
    assert app.status().running is False


class Stopped(threading.Event):
    """Is set after so many pauses, each of which it leaves out."""

    def __init__(self, pauses: int) -> None:
        super().__init__()
        self.pauses = pauses

    def wait(self, timeout: float | None = None) -> bool:
        self.pauses -= 1
        if not self.pauses:
            self.set()
        return self.is_set()
