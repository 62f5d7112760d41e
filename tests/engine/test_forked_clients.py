"""A forked child is a client of its own: it inherits no lock, no engine, no connection and no open file."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.server_fixtures import Servers

APP = """
import asyncio, os, signal, sys, threading
from rota import Rota

app = Rota(sys.argv[1])

@app.task
async def quick(n: int) -> int:
    return n
"""


@pytest.fixture(params=["sqlite", "valkey-9", "postgres-18"])
def url(request: pytest.FixtureRequest, tmp_path: Path, servers: Servers, namespace: str) -> str:
    """A new store of each kind that other processes can open."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/rota.db"
    place = servers.get(request.param).url
    return f"{place}{'&' if '?' in place else '?'}{'schema' if 'postgres' in place else 'namespace'}={namespace}"


def run_on_a_new_file(code: str, folder: Path) -> None:
    run_on(f"sqlite:///{folder}/rota.db", code)


def run_on(url: str, code: str) -> None:
    """In a process of its own, with the app above; it must end well."""
    command = [sys.executable, "-c", APP + code, url]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr


FORKED = """

async def main():
    async with app:
        await (await quick.submit(1)).result(timeout=10)
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                assert not app.status().running, "a forked child is a client"
                asyncio.events._set_running_loop(None)
                quick.submit_sync(2)
                code = 0
            finally:
                os._exit(code)
        _, status = await asyncio.to_thread(os.waitpid, pid, 0)
        assert status == 0, status
        async with asyncio.timeout(10):
            while any((await app.depths()).values()):
                await app.client().news()
asyncio.run(main())
"""


def test_a_forked_child_is_a_client(url: str) -> None:
    run_on(url, FORKED)


FORKED_IN_A_TRANSACTION = """

async def main():
    async with app.client() as client:
        store = await client.store()
        entered, never = threading.Event(), threading.Event()

        def hold(book: object) -> None:
            entered.set()
            never.wait(1)

        held = asyncio.create_task(store._transact(hold))
        await asyncio.to_thread(entered.wait)
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                asyncio.events._set_running_loop(None)
                quick.submit_sync(2)
                code = 0
            finally:
                os._exit(code)
        _, status = await asyncio.to_thread(os.waitpid, pid, 0)
        await held
        assert status == 0, status
asyncio.run(main())
"""


def test_a_child_that_is_forked_beside_a_transaction_inherits_no_lock(tmp_path: Path) -> None:
    run_on_a_new_file(FORKED_IN_A_TRANSACTION, tmp_path)


FORKED_AND_LEFT = """
(to_parent, from_child), (to_child, from_parent) = os.pipe(), os.pipe()

async def child():
    async with app.client():
        await quick.submit(2)
        os.write(from_child, b".")
        os.read(to_child, 1)
        await quick.submit(3)  # the parent has closed its store

async def main():
    async with app.client():
        await quick.submit(1)
        pid = os.fork()
        if pid == 0:
            asyncio.events._set_running_loop(None)
            asyncio.run(child())
            os._exit(0)
        os.read(to_parent, 1)
    os.write(from_parent, b".")
    assert os.waitpid(pid, 0)[1] == 0
    async with app.client():
        (depth,) = (await (await app.client().store()).depths()).items
        assert depth.queued == 3, depth
asyncio.run(main())
"""


def test_a_forked_child_keeps_its_store_when_the_parent_closes_its_own(url: str) -> None:
    run_on(url, FORKED_AND_LEFT)


FORKED_BESIDE_CALLS = """
import queue

ids, submitted, stop = [quick.submit_sync(1).id], queue.SimpleQueue(), threading.Event()

def submit():
    while not stop.is_set():
        ids.append(quick.submit_sync(1).id)
        submitted.put(None)

threads = [threading.Thread(target=submit) for _ in range(4)]
for thread in threads:
    thread.start()
for _ in range(5):
    pid = os.fork()  # requests of the parent are under way, and their answers are for the parent
    if pid == 0:
        code = 1
        try:
            signal.alarm(20)
            assert quick.submit_sync(2).id not in ids
            code = 0
        finally:
            os._exit(code)
    assert os.waitpid(pid, 0)[1] == 0, "the child failed"
    for _ in threads:
        submitted.get(timeout=20)
stop.set()
for thread in threads:
    thread.join()
depth = app.portal.call(app.depths)["quick"]
assert depth.queued == len(set(ids)) + 5, (depth, len(ids))
"""


def test_parent_and_child_take_no_answer_of_each_other(url: str) -> None:
    run_on(url, FORKED_BESIDE_CALLS)


INHERITED_LOCKS = """

def forked(work):
    pid = os.fork()
    if pid == 0:
        signal.alarm(20)  # one that waits for an inherited lock waits for ever
        code = 1
        try:
            work()
            code = 0
        finally:
            os._exit(code)
    assert os.waitpid(pid, 0)[1] == 0, "the child failed"

def held(lock):
    # By a thread that the child does not have.
    taken = threading.Event()
    threading.Thread(target=lambda: (lock.acquire(), taken.set()), daemon=True).start()
    taken.wait()
"""


FORKED_BESIDE_A_CALL = (
    INHERITED_LOCKS
    + """
quick.submit_sync(1)
home = app.portal._home.get()
held(home.lock)
held(app.backend._hub._here.get().lock)
forked(lambda: quick.submit_sync(2))
forked(lambda: forked(lambda: quick.submit_sync(3)))
home.lock.release(), app.backend._hub._here.get().lock.release()
depth = app.portal.call(app.depths)["quick"]
assert depth.queued == 3, depth
"""
)


def test_a_child_that_is_forked_beside_a_call_from_a_thread_inherits_no_lock(tmp_path: Path) -> None:
    run_on_a_new_file(FORKED_BESIDE_A_CALL, tmp_path)


FORKED_BESIDE_A_STUCK_STORE = (
    INHERITED_LOCKS
    + """
import rota.stores.forks as forks
from rota.stores.memory import MemoryBackend

forks.PATIENCE = 0.1
memory = Rota(MemoryBackend())
memory.task(quick.fn)
store = memory.portal.call(memory.client().store)

def again():
    forks.PATIENCE = 1e6  # nothing may be waited for in a fork of the child
    forked(lambda: None)

held(store.at_work)
forked(again)
store.at_work.release()
memory.tasks["quick"].submit_sync(1)
forked(lambda: memory.tasks["quick"].submit_sync(2))  # a copy of the store, whole
"""
)


def test_a_fork_of_a_child_does_not_wait_for_a_store_that_was_busy_in_its_parent(tmp_path: Path) -> None:
    run_on_a_new_file(FORKED_BESIDE_A_STUCK_STORE, tmp_path)


FORKED_WHILE_A_STORE_OPENS = """
import sqlite3

entered, connect, connected = threading.Event(), sqlite3.connect, []

def slow(*args, **options):
    entered.set()
    threading.Event().wait(0.5)  # the fork comes now
    connected.append(connect(*args, **options))
    return connected[-1]

async def open_store():
    async with app.client():
        pass

sqlite3.connect = slow
opener = threading.Thread(target=lambda: asyncio.run(open_store()))
opener.start()
entered.wait()
pid = os.fork()
if pid == 0:
    os._exit(0)
assert connected, "the fork did not wait"
os.waitpid(pid, 0)
opener.join()
"""


def test_a_fork_waits_for_a_store_that_another_thread_opens(tmp_path: Path) -> None:
    run_on_a_new_file(FORKED_WHILE_A_STORE_OPENS, tmp_path)
