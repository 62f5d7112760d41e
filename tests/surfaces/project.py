"""A user's project in a folder of its own, and the command `rota` run in it as users run it."""

import atexit
import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[2]
PATIENCE = 60.0
"""Seconds after which a line that did not come fails the test."""

TASKS = '''
import asyncio
from pathlib import Path

from rota import Context, Retry, Rota

app = Rota()


@app.task
async def greet(name: str, times: int = 1) -> str:
    """Says hello.

    As often as asked.
    """
    return f"hello {name}" * times


@app.task(retry=Retry(1, delay=0.0), timeout=30)
def trip(message: str) -> None:
    """Always fails."""
    raise ValueError(message)


@app.task
def hold(ctx: Context, gate: Path) -> str:
    """Ends when the gate is opened."""
    ctx.progress(0.5, "halfway")
    gate.read_bytes()
    return "held"


@app.task
async def forever() -> None:
    await asyncio.Event().wait()
'''


class Done(NamedTuple):
    """A command that has ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def rows(self) -> list[dict[str, str]]:
        """TSV by its header."""
        header, *lines = [line.split("\t") for line in self.out.splitlines()]
        return [dict(zip(header, line, strict=True)) for line in lines]


class Forker:
    """The other side of tests/surfaces/forker.py."""

    def __init__(self) -> None:
        command = [sys.executable, "-m", "tests.surfaces.forker"]
        self._process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        atexit.register(self._process.kill)

    def run(self, arguments: Sequence[str], folder: Path, environment: dict[str, str], files: Sequence[Path]) -> int:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        request = [list(arguments), str(folder), environment, [str(file) for file in files]]
        print(json.dumps(request), file=self._process.stdin, flush=True)
        return int(self._process.stdout.readline())


@cache
def forker() -> Forker:
    return Forker()


class Project:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.database = folder / "rota.db"
        self.url = f"sqlite:///{self.database}"
        (folder / "pyproject.toml").write_text('[tool.rota]\napp = "tasks:app"\n')
        (folder / "tasks.py").write_text(TASKS)

    @property
    def environment(self) -> dict[str, str]:
        ours = {name: value for name, value in os.environ.items() if not name.startswith("ROTA_")}
        return ours | {"ROTA_URL": self.url, "PYTHONUNBUFFERED": "1"}

    def rota(self, *arguments: str, stdin: str = "", **environment: str) -> Done:
        """One command to its end."""
        with tempfile.TemporaryDirectory() as place:
            files = [Path(place) / name for name in ("in", "out", "err")]
            files[0].write_text(stdin)
            code = forker().run(arguments, self.folder, self.environment | environment, files)
            return Done(code, files[1].read_text(), files[2].read_text())

    def gate(self) -> Path:
        """A named pipe: whoever reads it waits until somebody opens it for writing, as `open_gate` does."""
        gate = self.folder / "gate"
        os.mkfifo(gate)
        return gate

    @contextmanager
    def start(self, *arguments: str, **environment: str) -> Iterator["subprocess.Popen[str]"]:
        """A command that goes on; killed at the end of the block if it still does."""
        process = subprocess.Popen(
            [sys.executable, "-m", "rota", *arguments],
            cwd=self.folder,
            env=self.environment | environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        with process:
            try:
                yield process
            finally:
                process.kill()


def open_gate(gate: Path) -> None:
    """Lets the run that waits at the gate go on; waits itself for a run that has not come so far."""
    gate.write_bytes(b"")


def line_with(process: "subprocess.Popen[str]", word: str) -> str:
    """The next line of output that has the word; fails with all that was said if none comes."""
    assert process.stdout is not None
    said: list[str] = []
    patience = threading.Timer(PATIENCE, process.kill)
    patience.start()
    try:
        for line in process.stdout:
            said.append(line)
            if word in line:
                return line
    finally:
        patience.cancel()
    raise AssertionError(f"no line with {word!r} in:\n{''.join(said)}")


def sentence(done: Done, code: int) -> str:
    """What a failed command says: one line for people, no traceback, and nothing on stdout."""
    assert done.code == code, done
    assert done.out == "", done
    assert done.err.startswith("rota: "), done
    assert done.err.count("\n") == 1, done
    return done.err
