"""Runs commands of `rota` in children of one process that has imported them all: a command costs no import.

A request is a line of JSON: [arguments, folder, environment, files of stdin, stdout and stderr]. The answer is a line
with the exit code. A child sees what a new process sees, except that modules of rota are already imported.
"""

import importlib
import json
import os
import pkgutil
import signal
import sys

import rota.cli

PATIENCE = 60
"""Seconds after which a command that goes on is killed."""


def warm() -> None:
    for module in pkgutil.walk_packages(rota.cli.__path__, "rota.cli."):
        importlib.import_module(module.name)
    importlib.import_module("rota.stores.sqlite")


def become(arguments: list[str], folder: str, environment: dict[str, str], files: list[str]) -> None:
    for descriptor, (name, mode) in enumerate(zip(files, ("r", "w", "w"), strict=True)):
        with open(name, mode) as file:
            os.dup2(file.fileno(), descriptor)
    sys.stdin, sys.stdout, sys.stderr = os.fdopen(0), os.fdopen(1, "w"), os.fdopen(2, "w")
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.path.insert(0, folder)
    sys.argv = ["rota", *arguments]
    signal.alarm(PATIENCE)


def serve() -> None:
    """Answer requests until there are no more. A child leaves the loop and runs its command."""
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            become(*json.loads(line))
            rota.cli.main()
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


if __name__ == "__main__":
    warm()
    serve()
