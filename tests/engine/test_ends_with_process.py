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


@pytest.mark.parametrize("kind", ["sqlite", "valkey-9", "postgres-18"])
async def test_an_engine_stops_with_its_process_without_new_threads(
    kind: str, servers: Servers, namespace: str, tmp_path: Path
) -> None:
    url = f"sqlite:///{tmp_path}/rota.db" if kind == "sqlite" else in_place(servers.get(kind).url, namespace)
    done = subprocess.run(  # noqa: ASYNC221 - nothing else happens here
        [sys.executable, "-c", PROGRAM, url],
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
