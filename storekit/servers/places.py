"""Where a server may live: a private folder, an address, and an account that is not root."""

import os
import random
import socket
import tempfile
from pathlib import Path

Address = Path | tuple[str, int]
"""A Unix socket, or a host and a port."""

LONGEST_FOLDER = 80
"""A Unix socket's path has at most 103 characters (macOS), the folder is only its beginning."""

NOBODY = 65534


def unprivileged_account() -> int | None:
    """The user and group for a server that refuses to run as root; None: one's own will do."""
    return NOBODY if os.geteuid() == 0 else None


def private_folder(name: str, account: int | None = None) -> Path:
    """A new folder that only its owner can look into, with a path short enough for a Unix socket."""
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
    """Whether another account can reach what lies at this path."""
    resolved = path.resolve()
    return all(place.stat().st_mode & 0o001 for place in (resolved, *resolved.parents))


def free_port() -> int:
    """A loopback port that nobody listens on.

    Below the range from which outgoing connections get theirs, or one of those could take it during a restart. Two
    processes of a parallel run must not try the same ports in the same order, so a seeded `random` has no say in it.
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
