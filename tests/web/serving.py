"""`rota serve` in a process of its own."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from msgspec import Struct

APP = """
from rota import Rota

app = Rota()


@app.task
async def add(a: int, b: int = 1) -> int:
    return a + b
"""


class Served(Struct, frozen=True):
    url: str
    token: str
    folder: Path
    process: "subprocess.Popen[str]"


@contextmanager
def serving(folder: Path, store: str, *options: str, token: str | None = None) -> Iterator[Served]:
    """Serve an app of one task on a free port until the block ends."""
    (folder / "jobs.py").write_text(APP)
    environment = {**os.environ, "ROTA_URL": store, **({} if token is None else {"ROTA_TOKEN": token})}
    command = [sys.executable, "-m", "rota", "-A", "jobs:app", "serve", "--port", "0", *options]
    process = subprocess.Popen(command, cwd=folder, env=environment, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        found: dict[str, str] = {}
        for line in process.stderr:
            if " at http://" in line:
                found["url"] = line.strip().rpartition(" at ")[2]
            if line.startswith("token for this start: "):
                found["token"] = line.strip().rpartition(" ")[2]
            if "url" in found and (token or "token" in found or "--no-token" in options):
                break
        yield Served(found["url"], token or found.get("token", ""), folder, process)
    finally:
        process.terminate()
        process.communicate()
