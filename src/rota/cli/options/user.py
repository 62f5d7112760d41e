"""The user who runs the command, for the record of decisions."""

import getpass
import socket


def who() -> str:
    """`user@host`."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # a user id without a name
        user = "someone"
    return f"{user}@{socket.gethostname()}"
