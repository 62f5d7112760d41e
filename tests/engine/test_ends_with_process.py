"""An engine that synchronous code has started stops with its process, without a thread that a process at its end does
not get: from Python 3.12 on, none starts then."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from rota import Rota
from rota.domain.run import State
from tests.faults.conftest import in_place
from tests.server_fixtures import Servers

PROGRAM = """
import logging, sys, threading

logging.basicConfig(level=logging.INFO, format="%(message)s")
from rota import Rota

app, held = Rota(sys.argv[1]), threading.Event()


@app.task
def linger() -> None:
    held.set()
    threading.Event().wait(300)


@app.task
async def elsewhere() -> None:
    import asyncio

    await asyncio.to_thread(lambda: None)  # the loop has an executor now, as after a look-up of a host


def refused(*_: object, **__: object) -> None:
    raise RuntimeError("can't create new thread at interpreter shutdown")


app.start_sync()
elsewhere.submit_sync().result_sync(60)
print(linger.submit_sync().id)
held.wait(60)
if sys.version_info < (3, 12):  # as later versions of Python do themselves
    threading._register_atexit(lambda: setattr(threading, "_start_new_thread", refused))
"""


STOPPED_BY_ANOTHER_THREAD = """
begun = threading.Event()
logging.getLogger("rota").addFilter(lambda record: begun.set() or True if "is stopping" in record.msg else True)
threading.Thread(target=app.stop_sync, daemon=True).start()
begun.wait(60)  # the process ends while that thread stops the engine
"""


@pytest.mark.parametrize("kind", ["sqlite", "valkey-9", "postgres-18"])
async def test_an_engine_stops_with_its_process_without_new_threads(
    kind: str, servers: Servers, namespace: str, tmp_path: Path
) -> None:
    url = f"sqlite:///{tmp_path}/rota.db" if kind == "sqlite" else in_place(servers.get(kind).url, namespace)
    await ends_well(PROGRAM, url)


async def test_a_process_may_end_while_another_thread_stops_its_engine(tmp_path: Path) -> None:
    await ends_well(PROGRAM + STOPPED_BY_ANOTHER_THREAD, f"sqlite:///{tmp_path}/rota.db")


async def ends_well(program: str, url: str) -> None:
    """Run a program; expect that its engine gave back the run in hand, and that nothing went wrong."""
    done = subprocess.run(  # noqa: ASYNC221 - nothing else happens here
        [sys.executable, "-c", program, url],
        env={**os.environ, "ROTA_GRACE": "0.1"},
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr.splitlines()[-1].endswith(" stopped"), done.stderr
    assert "Traceback" not in done.stderr
    async with Rota(url).client() as client:
        assert (await client.run(done.stdout.strip())).state is State.QUEUED
