"""The process executor: what happens to a child happens to its run alone."""

import asyncio
import os
import select
import signal
import sys
import threading
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime
from multiprocessing import spawn
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import msgspec
import pytest

from rota.domain.arguments import Signature
from rota.domain.run import Run
from rota.engine.context import Context
from rota.engine.executors import process
from rota.engine.executors.process import (
    ChildBadResult,
    ChildDied,
    ChildRaised,
    ChildStopped,
    ChildTimeout,
    ChildUnbindable,
    ProcessExecutor,
    check_importable,
)
from rota.engine.handler import Handler
from rota.task import takes_context
from tests.engine import process_tasks, slow_start
from tests.processes import PATIENCE, Process

MAIN = Path(__file__).with_name("process_main.py")
ENV = {"PYTHONPATH": os.pathsep.join([str(MAIN.parents[2]), os.environ.get("PYTHONPATH", "")])}


class Calls:
    """Calls of `process_tasks` in children; `noted` is set by the first progress of a handler."""

    def __init__(self) -> None:
        self.executor = ProcessExecutor()
        self.noted = asyncio.Event()
        self.context = Context(Run(id="r"))

    async def __call__(self, fn: Callable[..., Any], *args: Any, timeout: float | None = None, **run: Any) -> Any:
        self.context = Context(Run(id="r", fence=7, **run), changed=self.noted.set)
        handler = handler_of(fn)
        encoded = handler.signature.encode(args, {})
        result = await self.executor.call(handler, self.context, encoded, timeout)
        return None if result is None else msgspec.json.decode(result)

    async def begin(self, fn: Callable[..., Any], *args: Any) -> "asyncio.Task[Any]":
        """A call under way, once its handler has made progress."""
        task = asyncio.create_task(self(fn, *args))
        async with asyncio.timeout(PATIENCE):
            await self.noted.wait()
        return task

    async def pid(self) -> int:
        pid = await self(process_tasks.pid)
        assert isinstance(pid, int)
        return pid


def handler_of(fn: Callable[..., Any]) -> Handler:
    takes = takes_context(fn)
    signature = Signature(fn, skip=int(takes))
    return Handler(name=fn.__name__, fn=fn, signature=signature, executor="process", takes_context=takes)


@pytest.fixture
async def call() -> AsyncIterator[Calls]:
    calls = Calls()
    yield calls
    await calls.executor.close()


def await_end(pid: int) -> None:
    """Returns when this process, not necessarily ours, has ended; at once if it is gone already."""
    try:
        fd = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        assert select.select([fd], [], [], PATIENCE)[0], f"process {pid} is still alive"
    finally:
        os.close(fd)


# -- results -----------------------------------------------------------------------------------------------------------


async def test_arguments_and_results_travel_by_the_handlers_annotations(call: Calls) -> None:
    photo = process_tasks.Photo(Path("a.png"), datetime(2024, 5, 6, tzinfo=UTC))
    result = await call(process_tasks.describe.fn, photo)
    pid = result.pop("pid")
    assert result == {"kind": "PosixPath", "year": 2024, "width": 800}
    assert pid in call.executor.pids
    assert pid != os.getpid()
    assert await call(process_tasks.double, 21) == 42, "async handlers too"
    assert await call(process_tasks.nothing) is None
    assert call.executor.pids == [pid], "one child has done it all"


async def test_what_the_handler_leaves_reaches_the_parents_context(call: Calls) -> None:
    assert await call(process_tasks.go_on, saved=b'{"page":1}') == 2
    note = call.context.note()
    assert note is not None
    assert note.progress is not None
    assert (note.progress.share, note.progress.message) == (0.5, "half")
    assert note.saved == b'{"page":2}'
    assert call.context.warnings == ("careful",)


async def test_a_thread_that_outlives_its_call_has_no_say_in_the_next(call: Calls) -> None:
    await call(process_tasks.leave_a_thread)
    await call(process_tasks.let_it_speak)
    assert call.context.warnings == ()


async def test_a_result_that_cannot_be_stored_is_told_apart(call: Calls) -> None:
    with pytest.raises(ChildBadResult, match=r"builtins\.object has no JSON form"):
        await call(process_tasks.unwritable)
    with pytest.raises(ChildBadResult, match="takes 1,048,578 bytes, more than 1,048,576"):
        await call(process_tasks.too_large)


async def test_arguments_that_do_not_fit_are_told_apart(call: Calls) -> None:
    with pytest.raises(ChildUnbindable, match=r"do not fit double\(number: int\)"):
        await call.executor.call(handler_of(process_tasks.double), call.context, b'{"number":"x"}', None)


# -- exceptions --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fn", [process_tasks.stumble, process_tasks.stumble_async])
async def test_an_exception_comes_as_text_with_the_names_of_its_classes(call: Calls, fn: Callable[..., Any]) -> None:
    with pytest.raises(ChildRaised, match=r"process_tasks\.Strange: no luck") as caught:
        await call(fn, "luck")
    failure = caught.value.failure
    assert failure.message == "no luck"
    lines = failure.traceback.splitlines()
    assert f"in {fn.__name__}" in lines[1], "it begins with the handler, not with rota"
    assert 'raise Strange(f"no {how}")' in failure.traceback
    assert caught.value.kind_names[:2] == ("tests.engine.process_tasks.Strange", "builtins.ValueError")
    assert caught.value.verdict is None


async def test_a_verdict_comes_by_its_name_and_arguments(call: Calls) -> None:
    with pytest.raises(ChildRaised) as caught:
        await call(process_tasks.verdict)
    assert caught.value.verdict == ("RetryAfter", [60, "busy"])


async def test_a_handler_that_exits_has_failed_and_its_child_lives(call: Calls) -> None:
    with pytest.raises(ChildRaised, match="SystemExit: 3"):
        await call(process_tasks.leave)
    assert len(call.executor.pids) == 1


# -- death -------------------------------------------------------------------------------------------------------------


async def test_a_child_is_killed_at_the_timeout_with_all_it_started(call: Calls) -> None:
    with pytest.raises(ChildTimeout, match=r"killed after 0\.5 s"):
        await call(process_tasks.hold, timeout=0.5)
    child, sleeper = map(int, call.context.warnings)
    with pytest.raises(ProcessLookupError):
        os.kill(child, 0)
    await_end(sleeper)
    assert await call.pid() != child, "the next call has a new one"


async def test_the_start_of_a_child_does_not_count_for_the_timeout(
    call: Calls, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.mkfifo(gate := tmp_path / "gate")
    monkeypatch.setenv("SLOW_START", str(gate))
    calling = asyncio.create_task(call(slow_start.double, 1, timeout=1))
    held = await asyncio.to_thread(os.open, gate, os.O_WRONLY)  # the child imports the module, and waits
    assert not (await asyncio.wait((calling,), timeout=1.1))[0]
    os.close(held)
    assert await calling == 2


async def test_a_dead_child_says_how_it_died_and_the_next_call_has_another(call: Calls) -> None:
    with pytest.raises(ChildDied, match="ended with exit code 7 while it ran the handler"):
        await call(process_tasks.end, 7)
    with pytest.raises(ChildDied, match=r"was killed by SIGSEGV \(Segmentation fault\)") as caught:
        await call(process_tasks.crash)
    assert caught.value.called
    assert "in crash" in caught.value.traceback, "where it was"
    assert await call(process_tasks.double, 1) == 2


async def test_a_child_is_a_python_also_where_uwsgi_is_the_program(
    call: Calls, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    monkeypatch.setattr(spawn, "_python_exe", b"/bin/false")
    with pytest.raises(ChildDied, match="before it called the handler"):
        await call(process_tasks.double, 1)
    monkeypatch.setitem(sys.modules, "uwsgi", ModuleType("uwsgi"))
    assert await call(process_tasks.double, 1) == 2


async def test_a_death_is_seen_although_a_fork_of_the_child_lives_on(call: Calls) -> None:
    with pytest.raises(ChildDied, match="SIGSEGV"):
        await asyncio.wait_for(call(process_tasks.crash_beside_a_fork), PATIENCE)
    os.kill(int(call.context.warnings[0]), signal.SIGKILL)  # it was still there


async def test_a_crash_is_one_runs_loss_alone(call: Calls) -> None:
    seats = asyncio.Semaphore(3)

    async def one(number: int) -> Any:
        async with seats:
            return await call(process_tasks.crash_if, number, 20)

    results = await asyncio.gather(*map(one, range(50)), return_exceptions=True)
    assert isinstance(results.pop(20), ChildDied)
    assert results == [number for number in range(50) if number != 20]
    assert len(call.executor.pids) <= 3


async def test_a_child_that_died_between_two_runs_costs_neither(call: Calls) -> None:
    pid = await call.pid()
    os.kill(pid, signal.SIGKILL)
    await_end(pid)  # the loop has had no chance to notice
    assert await call.pid() != pid


async def test_signals_are_the_parents_to_decide_on(call: Calls) -> None:
    assert await call(process_tasks.endure_signals) == [-signal.SIGTERM, -signal.SIGTERM]


# -- stopping ----------------------------------------------------------------------------------------------------------


async def test_a_cancelled_handler_sees_that_it_should_stop(call: Calls) -> None:
    task = await call.begin(process_tasks.listen)
    pids = call.executor.pids
    call.context.stop()
    task.cancel()
    with pytest.raises(ChildStopped) as caught:
        await task
    assert caught.value.ended
    assert not caught.value.succeeded, "it returned because it was told to"
    assert call.context.noticed
    assert [await call.pid()] == pids, "a child that behaves is kept"


async def test_an_async_handler_is_cancelled_and_cleans_up(call: Calls) -> None:
    task = await call.begin(process_tasks.cleanup)
    task.cancel()
    with pytest.raises(ChildStopped) as caught:
        await task
    assert caught.value.ended
    assert call.context.warnings == ("cleaned up",)


async def test_a_handler_that_did_not_look_has_done_its_work(call: Calls) -> None:
    task = await call.begin(process_tasks.oblivious)
    task.cancel()
    with pytest.raises(ChildStopped) as caught:
        await task
    assert caught.value.succeeded
    assert caught.value.result == b'"done"'


async def test_a_handler_that_does_not_stop_is_killed(call: Calls, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "PATIENCE", 0.05)
    task = await call.begin(process_tasks.hold)
    task.cancel()
    with pytest.raises(ChildStopped) as caught:
        await task
    assert task.cancelled()
    assert not caught.value.ended
    assert call.executor.pids == []
    await_end(int(call.context.warnings[1]))


async def test_closing_ends_busy_and_idle_children_and_leaves_nothing(call: Calls, tmp_path: Path) -> None:
    fds, threads = set(os.listdir("/proc/self/fd")), threading.active_count()
    idle = await call.pid()
    await call(process_tasks.say_goodbye, tmp_path / "goodbye")
    other = Calls()  # the same loop, so that only the executor can leak
    busy = await other.begin(process_tasks.hold)
    pids = [idle, *other.executor.pids]
    await call.executor.close()
    await other.executor.close()
    with pytest.raises(ChildDied, match="because its worker stops"):
        await busy
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)  # not even a zombie
    assert (tmp_path / "goodbye").read_text() == "goodbye", "an idle child ends with its exit hooks"
    assert set(os.listdir("/proc/self/fd")) == fds
    for thread in threading.enumerate():
        if thread.name.startswith("rota-child"):
            thread.join(PATIENCE)
    assert threading.active_count() <= threads
    with pytest.raises(ChildDied, match="the worker has stopped"):
        await call.pid()


async def test_a_child_is_replaced_after_so_many_calls(
    call: Calls, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(process, "CALLS", 2)
    first = await call.pid()
    await call(process_tasks.say_goodbye, tmp_path / "goodbye")
    assert await call.pid() != first
    await_end(first)
    assert (tmp_path / "goodbye").exists()


# -- programs of their own ---------------------------------------------------------------------------------------------


def test_children_find_the_main_module_and_die_with_a_parent_that_is_killed() -> None:
    with Process(str(MAIN), env=ENV) as parent:
        raised = parent.wait_for("^raised")[0].split()
        assert raised[1:4] == ["__main__.Mine", "__main__.Mine", "builtins.Exception"]
        pids = [int(line.split()[1]) for line in parent.wait_for("^child", 2)]
        assert len({*pids}) == 2, "one waits, one holds the GIL"
        parent.signal(signal.SIGKILL)
        for pid in pids:
            await_end(pid)


def test_a_main_module_without_its_guard_is_told_so(tmp_path: Path) -> None:
    program = MAIN.read_text().replace('if __name__ == "__main__":', "if True:")
    (tmp_path / "unguarded.py").write_text(program)
    with Process(str(tmp_path / "unguarded.py"), env=ENV) as parent:
        assert "RuntimeError" in parent.wait_for("^raised")[0]


# -- which function ----------------------------------------------------------------------------------------------------


def test_a_function_that_no_child_could_find_is_refused_when_it_is_defined() -> None:
    def local() -> None: ...

    with pytest.raises(ValueError, match="defined inside another function"):
        check_importable(local)
    with pytest.raises(ValueError, match="lambda"):
        check_importable(lambda: None)
    with pytest.raises(ValueError, match="has no name in a module"):
        check_importable(Calls())
    check_importable(process_tasks.double)


def test_a_main_module_that_no_child_could_run_again_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def prompted() -> None: ...

    prompted.__module__, prompted.__qualname__ = "__main__", "prompted"
    monkeypatch.setitem(sys.modules, "__main__", ModuleType("__main__"))
    with pytest.raises(ValueError, match="not in a file that a child could import"):
        check_importable(prompted)


async def test_a_name_that_means_another_function_is_refused(call: Calls) -> None:
    with pytest.raises(ValueError, match="defined twice"):
        await call(FunctionType(process_tasks.pid.__code__, process_tasks.pid.__globals__))
    assert call.executor.pids == []
