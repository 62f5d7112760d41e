"""Who asks: for the record that every command leaves."""

import getpass
import socket


def who() -> str:
    """Who sits here."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # a user id without a name
        user = "someone"
    return f"{user}@{socket.gethostname()}"
