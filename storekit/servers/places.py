"""Private folders, free ports and an unprivileged account for servers."""

import os
import random
import socket
import tempfile
from pathlib import Path

Address = Path | tuple[str, int]
"""A Unix socket, or a host and a port."""

LONGEST_FOLDER = 80
"""The path of a Unix socket has at most 103 characters (macOS), and the folder is only a part of it."""

NOBODY = 65534


def unprivileged_account() -> int | None:
    """Return the user and group id for a server that refuses to run as root; None if this process is not root."""
    return NOBODY if os.geteuid() == 0 else None


def private_folder(name: str, account: int | None = None) -> Path:
    """Return a new folder that only its owner can read, with a path short enough for a Unix socket."""
    candidates = [Path(tempfile.gettempdir()), Path("/tmp")]
    fitting = [
        place
        for place in candidates
        if len(str(place)) <= LONGEST_FOLDER - 30 and (account is None or open_to_others(place))
    ]
    folder = Path(tempfile.mkdtemp(prefix=f"rota-{name}-", dir=(fitting or candidates)[0]))
    if account is not None:
        os.chown(folder, account, account)
    return folder


def open_to_others(path: Path) -> bool:
    """Return whether another account can reach a path."""
    resolved = path.resolve()
    return all(place.stat().st_mode & 0o001 for place in (resolved, *resolved.parents))


def free_port() -> int:
    """Return a loopback port on which nobody listens.

    It is below the range of ports for outgoing connections: one of those could take the port during a restart. The
    choice does not use a seeded `random`, because two processes of a parallel test run must not try the same ports in
    the same order.
    """
    dice = random.SystemRandom()
    for _ in range(100):
        port = dice.randint(20_000, 32_000)
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise OSError("No free loopback port was found in a hundred tries.")
