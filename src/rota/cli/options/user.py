"""The user at the terminal: a name for the record of decisions, and a question before something large is done."""

import asyncio
import getpass
import socket
import sys

from rota.errors import InvalidOptions, RotaError


def who() -> str:
    """Return `user@host`."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # a user id without a name
        user = "someone"
    return f"{user}@{socket.gethostname()}"


async def confirm(question: str, refused: str, unattended: str = "") -> None:
    """Ask `question` on the terminal; without a yes, raise RotaError with the words of `refused`.

    Where no terminal is there to answer, `unattended` says in words what would happen, and that it takes --yes.
    """
    if unattended and not sys.stdin.isatty():
        raise InvalidOptions(f"{unattended}; say so with --yes")
    sys.stderr.write(f"{question} [y/N] ")
    sys.stderr.flush()
    answer = await asyncio.to_thread(sys.stdin.readline)
    if answer.strip().lower() not in ("y", "yes"):
        raise RotaError(refused)
