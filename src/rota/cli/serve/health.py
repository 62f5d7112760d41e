"""`rota health`: ask the service on this machine whether it can do its work. No user code and no package is imported,
because a container asks every few seconds."""

import os
import socket
import sys

DEFAULT = "http://127.0.0.1:8100"
PATIENCE = 5.0
USAGE = "usage: rota health [http://HOST:PORT | unix:/path of the socket]"


def check(arguments: list[str]) -> int:
    """Exit code 0: ready. 1: not ready, or no answer. 2: asked wrongly."""
    if arguments in (["-h"], ["--help"]):
        sys.stdout.write(
            f"{USAGE}\n\nAsk a service (rota serve) whether it is ready: exit code 0 if it is, 1 if not.\n"
        )
        return 0
    url = arguments[0] if arguments else os.environ.get("ROTA_SERVER") or DEFAULT
    if len(arguments) > 1 or not url.startswith(("http://", "https://", "unix:")):
        sys.stderr.write(f"rota: {USAGE}\n")
        return 2
    try:
        status = _secure_status(url) if url.startswith("https:") else _status(url)
    except (OSError, ValueError) as error:
        sys.stderr.write(f"rota: {url} does not answer: {error}\n")
        return 1
    if status == 200:
        sys.stdout.write("ready\n")
        return 0
    sys.stderr.write(f"rota: {url} is not ready: it answers {status}\n")
    return 1


def _status(url: str) -> int:
    """Ask by a bare socket: the modules of HTTP take longer to import than the answer takes."""
    path = "/ready"
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
        path, host = (f"/{prefix}/ready" if prefix else path), place
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


def _secure_status(url: str) -> int:
    from urllib.error import HTTPError
    from urllib.request import urlopen

    try:
        with urlopen(f"{url.rstrip('/')}/ready", timeout=PATIENCE) as answer:  # the scheme is https
            return int(answer.status)
    except HTTPError as error:
        return error.code


def health(url: str | None = None, /) -> int:
    """Ask a service (rota serve) on this machine whether it is ready.

    Parameters
    ----------
    url
        Where the service listens: http://HOST:PORT, or unix:/path of its socket [ROTA_SERVER, http://127.0.0.1:8100].
    """
    return check([] if url is None else [url])
