"""`rota health`: ask the service or the worker on this machine whether it can do its work. No user code and no package
is imported, because a container asks every few seconds."""

import os
import socket
import sys
import time

DEFAULT = "http://127.0.0.1:8100"
PATIENCE = 5.0
FRESH = 60.0
"""Seconds for which a sign in the file of `rota worker --health-file` counts. The worker writes one every 5 s."""
LIVE = "--live"
USAGE = "usage: rota health [--live] [http://HOST:PORT | unix:/path of the socket | file:/path of the --health-file]"
HELP = """
Ask a service (rota serve) or a worker (rota worker --health-file) whether it is ready: exit code 0 if it is, 1 if not.
--live asks whether it is alive, which is also so while the store does not answer: for probes that restart.
"""


def check(arguments: list[str]) -> int:
    """Exit code 0: ready. 1: not ready, or no answer. 2: asked wrongly."""
    if arguments in (["-h"], ["--help"]):
        sys.stdout.write(f"{USAGE}\n{HELP}")
        return 0
    live = LIVE in arguments
    places = [word for word in arguments if word != LIVE]
    url = places[0] if places else os.environ.get("ROTA_SERVER") or DEFAULT
    if len(places) > 1 or not url.startswith(("http://", "https://", "unix:", "file:")):
        sys.stderr.write(f"rota: {USAGE}\n")
        return 2
    if url.startswith("file:"):
        return _by_file(url.removeprefix("file:").removeprefix("//"), live)
    path = "/health" if live else "/ready"
    try:
        status = _secure_status(url, path) if url.startswith("https:") else _status(url, path)
    except (OSError, ValueError) as error:
        sys.stderr.write(f"rota: {url} does not answer: {error}\n")
        return 1
    if status == 200:
        sys.stdout.write("live\n" if live else "ready\n")
        return 0
    sys.stderr.write(f"rota: {url} is not {'live' if live else 'ready'}: it answers {status}\n")
    return 1


def _by_file(path: str, live: bool) -> int:
    """Judge the last sign of life that a worker has written."""
    try:
        with open(path) as file:
            word, at = file.read(100).split()
        age = time.monotonic() - float(at)
    except (OSError, ValueError) as error:
        sys.stderr.write(f"rota: no sign of life in {path}: {error}\n")
        return 1
    if not 0 <= age <= FRESH:
        sys.stderr.write(f"rota: the last sign of life in {path} is {age:.0f} s old: the worker is stuck or dead\n")
        return 1
    if word == "ready" or live:
        sys.stdout.write("live\n" if live else "ready\n")
        return 0
    sys.stderr.write("rota: the worker is alive and not ready: the store does not answer it, or it stops\n")
    return 1


def _status(url: str, path: str) -> int:
    """Ask by a bare socket: the modules of HTTP take longer to import than the answer takes."""
    if url.startswith("unix:"):
        connected = socket.socket(socket.AF_UNIX)
        connected.settimeout(PATIENCE)
        connected.connect(url.removeprefix("unix:").removeprefix("//"))
        host = "localhost"
    else:
        place, _, prefix = url.removeprefix("http://").rstrip("/").partition("/")
        host, colon, port = place.rpartition(":")
        if not colon or "]" in port:
            host, port = place, "80"
        connected = socket.create_connection((host.strip("[]"), int(port)), PATIENCE)
        path, host = (f"/{prefix}{path}" if prefix else path), place
    with connected:
        connected.settimeout(PATIENCE)
        connected.sendall(f"GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
        line = b""
        while b"\r\n" not in line and len(line) < 200:
            part = connected.recv(200)
            if not part:
                break
            line += part
    words = line.split(b" ", 2)
    if len(words) < 2 or not words[0].startswith(b"HTTP/") or not words[1].isdigit():
        raise ValueError("that is no HTTP")
    return int(words[1])


def _secure_status(url: str, path: str) -> int:
    from urllib.error import HTTPError
    from urllib.request import urlopen

    try:
        with urlopen(f"{url.rstrip('/')}{path}", timeout=PATIENCE) as answer:  # the scheme is https
            return int(answer.status)
    except HTTPError as error:
        return error.code


def health(place: str | None = None, /, *, live: bool = False) -> int:
    """Ask a service (rota serve) or a worker (rota worker --health-file) on this machine whether it is ready.

    Parameters
    ----------
    place
        http://HOST:PORT, unix:/path of a socket, or file:/path of a --health-file [ROTA_SERVER, http://127.0.0.1:8100].
    live
        Only ask whether it is alive, also while the store does not answer.
    """
    return check([*([LIVE] if live else []), *([] if place is None else [place])])
