"""The README followed line by line, in one folder and in its order, as a stranger follows it: files and commands."""

import json
import os
import re
import signal
import subprocess
import sys
import sysconfig
import threading
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PATIENCE = 60.0
"""Seconds after which a command that does not end fails the test."""
AN_ID = "520bec674128"
"""The id that the README shows; a reader puts one of their own runs there."""
SAID = {
    "rota submit greet name=Ada --wait": r"hello Ada",
    "python main.py": r"^hello Ada$",
    "python times.py": r"^next at \d{4}-\d\d-\d\d \d\d:\d\d:\d\d\+00:00$",
    "python active.py": r"^True accepted\nTrue joined\nTrue joined\n",
    "python day.py": r"^\{'R1C1': 12, 'R1C2': 12\}$",
    "rota flows show race_day": r"publish",
    "rota schedules show report": r"09:00",
    "rota why thumbs": r"the disk is full",
    "rota call greet name=Ada": r"hello Ada",
    "pytest -o asyncio_mode=auto test_jobs.py": r"2 passed",
}
CODES = {"rota diff": 3}


class Terminal:
    """A shell that a reader types into; a line is done when the shell has said so."""

    def __init__(self, folder: Path) -> None:
        ours = {name: value for name, value in os.environ.items() if not name.startswith(("ROTA_", "VIRTUAL_ENV"))}
        path = f"{Path(sys.executable).parent}{os.pathsep}{ours['PATH']}"
        self._shell = subprocess.Popen(
            ["sh"],
            cwd=folder,
            env={**ours, "PATH": path, "COLUMNS": "80"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def type(self, line: str) -> tuple[int, str]:
        """The exit code of a line, and what it printed."""
        self.send(f'{line}\necho "done: $?"')
        said = self.read_until(r"^done: \d+$")
        return int(said[-1].split()[1]), "".join(said[:-1])

    def send(self, text: str) -> None:
        assert self._shell.stdin is not None
        self._shell.stdin.write(text + "\n")
        self._shell.stdin.flush()

    def read_until(self, pattern: str) -> list[str]:
        assert self._shell.stdout is not None
        said: list[str] = []
        patience = threading.Timer(PATIENCE, self.close)
        patience.start()
        try:
            for line in self._shell.stdout:
                said.append(line)
                if re.search(pattern, line):
                    return said
        finally:
            patience.cancel()
        raise AssertionError(f"no line with {pattern!r} in:\n{''.join(said)}")

    def interrupt(self) -> None:
        """Ctrl-C: the whole foreground group hears it, and the shell goes on to its end."""
        os.killpg(self._shell.pid, signal.SIGINT)

    def close(self) -> None:
        if self._shell.poll() is None:
            os.killpg(self._shell.pid, signal.SIGKILL)
        self._shell.wait()
        for pipe in (self._shell.stdin, self._shell.stdout):
            if pipe is not None and not pipe.closed:
                pipe.close()


class Reader:
    """Writes the files and types the commands of the README, section by section."""

    def __init__(self, folder: Path, wheel: Path) -> None:
        self.folder = folder
        self._wheel = wheel
        self._terminal = Terminal(folder)
        self._workers: list[Terminal] = []

    def file(self, text: str) -> None:
        """A block that begins with the name of its file; `continued` adds to it."""
        name, continued = re.match(r"# (\S+?)(, continued)?\n", text).groups()  # type: ignore[union-attr]
        with (self.folder / name).open("a" if continued else "w") as file:
            file.write(text)

    def line(self, line: str) -> None:
        command = re.sub(r"\s+#.*", "", line)
        if command.startswith("pip install"):
            self._install(command.split()[2:])
        elif command in ("rota worker", "rota dev"):
            self._start(command)
        else:
            code, said = self._terminal.type(command.replace(AN_ID, self._a_run() if AN_ID in command else ""))
            assert code == CODES.get(command, 0), f"{command}: {code}\n{said}"
            assert re.search(SAID.get(command, ""), said, re.MULTILINE), f"{command}:\n{said}"

    def end_of_section(self) -> None:
        """Ctrl-C ends the workers; each of them ends gracefully."""
        for terminal in self._workers:
            terminal.interrupt()
            terminal.read_until(r"^ended: 0$")
            terminal.close()
        self._workers = []

    def close(self) -> None:
        for terminal in (self._terminal, *self._workers):
            terminal.close()

    def _start(self, command: str) -> None:
        terminal = Terminal(self.folder)
        self._workers.append(terminal)
        terminal.send(f'trap : INT; . .venv/bin/activate; {command}; echo "ended: $?"')
        terminal.read_until("rota worker: |rota dev: ")

    def _install(self, requirements: list[str]) -> None:
        """rota itself from this checkout; the rest is what this environment has, for a test asks no other host."""
        if requirements == ["rota"]:
            inside = self.folder / ".venv"
            subprocess.run(
                [
                    sys.executable,
                    "-m",
                    "pip",
                    "--python",
                    inside,
                    "install",
                    "-qq",
                    "--no-deps",
                    "--no-index",
                    self._wheel,
                ],
                check=True,
                timeout=PATIENCE,
            )
            packages = next(inside.glob("lib/python*/site-packages"))
            (packages / "outer.pth").write_text(f"{sysconfig.get_path('purelib')}\n")
        else:
            assert all(version(requirement) for requirement in requirements)

    def _a_run(self) -> str:
        code, said = self._terminal.type("rota runs ls --state succeeded --limit 1 --json 2> /dev/null")
        assert code == 0, said
        return str(json.loads(said)[0]["id"])[-len(AN_ID) :]


def parts(text: str) -> Iterator[tuple[str, str]]:
    """The headings and the code blocks of a page, in order."""
    for found in re.finditer(r"^## ([^\n]+)$|^```(\w+)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        yield ("heading", found[1]) if found[1] else (found[2], found[3])


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    command = [sys.executable, "-m", "pip", "wheel", "-qq", "--no-deps", "--no-build-isolation"]
    subprocess.run([*command, "-w", tmp_path / "wheels", ROOT], check=True, timeout=PATIENCE)
    return next((tmp_path / "wheels").glob("rota-*.whl"))


@pytest.mark.timeout(600)
def test_the_readme_works_line_by_line_in_its_order(tmp_path: Path, wheel: Path) -> None:
    folder = tmp_path / "shop"
    folder.mkdir()
    reader = Reader(folder, wheel)
    section = ""
    try:
        for kind, text in parts((ROOT / "README.md").read_text()):
            if kind == "heading":
                reader.end_of_section()
                section = text
            elif section == "Two commands":  # those of this checkout: they are what runs this test
                assert set(re.findall(r"^make (\w+)", text, re.MULTILINE)) == {"run", "test"}
            elif kind in ("python", "toml"):
                reader.file(text)
            else:
                assert kind == "sh"
                for line in text.splitlines():
                    reader.line(line)
        reader.end_of_section()
    finally:
        reader.close()
