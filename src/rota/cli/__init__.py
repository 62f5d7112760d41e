"""The entry point of the command `rota`: its exit codes, and its error messages on stderr."""

import io
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cyclopts import CycloptsError

    from rota.errors import RotaError

CALLS = ("submit", "call", "put")
"""Commands that take the arguments of a task."""
OK, FAILED, USAGE, INTERRUPTED = 0, 1, 2, 130
WORN = 75
"""`rota worker` has done its --max-runs or reached its --max-memory: start another (EX_TEMPFAIL of sysexits.h)."""
STOPPED = 76
"""A process of `rota worker --processes` was asked to stop from afar: its parent starts no other."""


def main() -> None:
    if sys.argv[1:2] == ["health"]:  # asked every few seconds: nothing else is imported
        from rota.cli.serve.health import check

        sys.exit(check(sys.argv[2:]))
    sys.exit(run(sys.argv[1:]))


def run(arguments: Sequence[str]) -> int:
    """Run one command and return its exit code: 0 done, 1 failed, 2 wrong usage."""
    from cyclopts import CycloptsError, UnknownOptionError

    from rota.cli.render.logs import hush_interrupts, warnings_to_stderr
    from rota.cli.tree import launch
    from rota.errors import InvalidOptions, RotaError

    hush_interrupts()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        for argument in arguments:
            if not argument.isprintable() and any(0xD800 <= ord(c) < 0xE000 for c in argument):
                raise InvalidOptions(f"{argument!r} is not UTF-8 text")
        with warnings_to_stderr():
            code = launch(arguments)
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        os.dup2(
            os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno()
        )  # else Python reports the broken pipe again at exit
        return FAILED
    except KeyboardInterrupt:
        return INTERRUPTED
    except UnknownOptionError as error:
        hint = _argument_hint(arguments, (error.token.keyword or error.token.value).partition("=")[0])
        debug = "--debug" in arguments
        return _explain(error if hint is None else InvalidOptions(hint), debug)
    except (CycloptsError, RotaError) as error:
        return _explain(error, debug="--debug" in arguments or os.environ.get("ROTA_DEBUG", "0") != "0")


def _argument_hint(arguments: Sequence[str], option: str) -> str | None:
    """Return the hint `name=Ada` for a user who wrote `--name Ada`; None if `option` cannot be an argument of a
    task."""
    command = next((word for word in arguments if word in CALLS), None)
    if command is None or not option.startswith("--"):
        return None
    name, at = option.removeprefix("--").replace("-", "_"), list(arguments).index(command)
    given = next((i for i, word in enumerate(arguments) if i > at and word.partition("=")[0] == option), None)
    _, equals, text = arguments[given].partition("=") if given is not None else ("", "", "")
    if not equals and given is not None and given + 1 < len(arguments) and not arguments[given + 1].startswith("-"):
        text = arguments[given + 1]
    return f"{command} has no option {option}; an argument of the task is written {name}={text or '…'}"


def _explain(error: "CycloptsError | RotaError", debug: bool) -> int:
    from cyclopts import CycloptsError

    from rota.cli.render.text import one_line
    from rota.errors import UsageError

    if debug:
        import traceback

        traceback.print_exception(error)
    words = None
    if isinstance(error, CycloptsError):
        from rota.cli.render.mistakes import words_for

        error.verbose = False
        words = words_for(error)
    sys.stderr.write(f"rota: {one_line(words or str(error))}\n")
    return USAGE if isinstance(error, CycloptsError | UsageError) else FAILED
