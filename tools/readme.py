"""Follows the README line by line, as a stranger does: writes its files, types its commands, looks at the answers."""

import json
import os
import re
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

PATIENCE = 60.0
"""Seconds after which a command that does not end counts as failed."""
AN_ID = "520bec674128"
"""The id that the README shows; a reader puts the id of one of their own runs there."""
ANSWERS = {
    "rota submit greet name=Ada --wait": r"hello Ada",
    "python jobs.py": r"^hello Ada$",
    "python active.py": r"^True accepted\nTrue joined\nTrue joined\n",
    "python day.py": r"^\{'R1C1': 12, 'R1C2': 12\}$",
    "rota flows show race_day": r"publish",
    "rota schedules show report": r"09:00",
    "rota why thumbs": r"the disk is full",
    "pytest -o asyncio_mode=auto test_jobs.py": r"2 passed",
}
CODES = {"rota diff": 3}
STARTED = {
    "rota worker": ("rota worker", "^rota worker: "),
    "rota dev": ("rota dev", "rota dev: "),
    "rota serve": ("rota serve --port 0", "^control room: http"),
}
"""Commands that go on until Ctrl-C: what is typed (a port that nobody else has), and the line that says it is ready."""
CHECKOUT = "Two commands"
"""The section whose commands are for a clone of the repository, not for a project that uses rota."""

Install = Callable[[Path, list[str]], None]
"""Does what `pip install` does in the README: gets the folder of the environment, and the requirements."""


class Terminal:
    """A shell that a reader types into. `python` is the folder in which the shell looks for `python3` first."""

    def __init__(self, folder: Path, python: Path) -> None:
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("ROTA_", "VIRTUAL_ENV", "PYTHONPATH", "PYTHONHOME"))
        }
        self._shell = subprocess.Popen(
            ["sh"],
            cwd=folder,
            env={**kept, "PATH": f"{python}{os.pathsep}{kept['PATH']}", "COLUMNS": "80"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def type(self, line: str) -> tuple[int, str]:
        """Run a line to its end; return its exit code and what it printed."""
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
        """Press Ctrl-C: the whole foreground group gets the signal, and the shell goes on to its end."""
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

    def __init__(self, folder: Path, python: Path, install: Install) -> None:
        self._folder = folder
        self._python = python
        self._install = install
        self._terminal = Terminal(folder, python)
        self._workers: list[Terminal] = []

    def file(self, text: str) -> None:
        """Write a block that begins with the name of its file; `continued` adds to that file."""
        name, continued = re.match(r"# (\S+?)(, continued)?\n", text).groups()  # type: ignore[union-attr]
        with (self._folder / name).open("a" if continued else "w") as file:
            file.write(text)

    def line(self, line: str) -> None:
        command = re.sub(r"\s+#.*", "", line)
        if command.startswith("pip install"):
            self._install(self._folder / ".venv", [word.strip('"') for word in command.split()[2:]])
        elif command in STARTED:
            self._start(*STARTED[command])
        else:
            code, said = self._terminal.type(command.replace(AN_ID, self._a_run() if AN_ID in command else ""))
            assert code == CODES.get(command, 0), f"{command}: {code}\n{said}"
            assert re.search(ANSWERS.get(command, ""), said, re.MULTILINE), f"{command}:\n{said}"

    def end_of_section(self) -> None:
        """Press Ctrl-C in the terminals of the workers; each worker ends gracefully."""
        for terminal in self._workers:
            terminal.interrupt()
            terminal.read_until(r"^ended: 0$")
            terminal.close()
        self._workers = []

    def close(self) -> None:
        for terminal in (self._terminal, *self._workers):
            terminal.close()

    def _start(self, command: str, ready: str) -> None:
        terminal = Terminal(self._folder, self._python)
        self._workers.append(terminal)
        terminal.send(f'trap : INT; . .venv/bin/activate; {command}; echo "ended: $?"')
        terminal.read_until(ready)

    def _a_run(self) -> str:
        code, said = self._terminal.type("rota runs ls --state succeeded --limit 1 --json 2> /dev/null")
        assert code == 0, said
        return str(json.loads(said)[0]["id"])[-len(AN_ID) :]


def parts(text: str) -> Iterator[tuple[str, str]]:
    """Yield the headings and the code blocks of a page, in order."""
    for found in re.finditer(r"^## ([^\n]+)$|^```(\w+)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        yield ("heading", found[1]) if found[1] else (found[2], found[3])


def follow(page: str, folder: Path, python: Path, install: Install, until: str | None = None) -> list[str]:
    """Follow the text of the README in an empty folder, up to the section `until`; return the sections followed."""
    reader = Reader(folder, python, install)
    sections = [""]
    try:
        for kind, text in parts(page):
            if kind == "heading":
                reader.end_of_section()
                if text == until:
                    break
                sections.append(text)
            elif sections[-1] == CHECKOUT:
                continue
            elif kind in ("python", "toml"):
                reader.file(text)
            else:
                assert kind == "sh", f"a block of {kind}"
                for line in text.splitlines():
                    reader.line(line)
        reader.end_of_section()
    finally:
        reader.close()
    return sections[1:]
