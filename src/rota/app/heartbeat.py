"""The dead-man ping: a schedule that calls a URL while this rota works. It exists if `heartbeat_url` is set.

A monitor at that URL raises an alarm when no call comes any more. The call is a run like any other, so it comes only
while ticks are fired, runs are claimed and calls end, on whichever worker: once for the fleet, and not once for each
process.
"""

from collections.abc import Callable, Sequence
from importlib.metadata import version
from typing import Any
from urllib.parse import urlsplit

from rota.app.pinned import PORTS, REDIRECTS, AllowList, Caller, Resolve, resolve
from rota.domain.policy import Retry
from rota.domain.triggers import Every
from rota.errors import InvalidOptions, TaskError

HEARTBEAT = "rota.heartbeat"
"""The name of the task."""
SECONDS = 10.0
"""How long a call may take."""


def options(every: float) -> dict[str, Any]:
    """Return the options of the task. A ping that comes late is none: it expires, and it is not made up for."""
    return {
        "name": HEARTBEAT,
        "description": "Tell the monitor that rota works",
        "executor": "thread",
        "timeout": SECONDS * 2,
        "retry": Retry(1, delay=1),
        "schedule": Every(every),
        "catch_up": "skip",
        "grace": every,
        "keep": every * 10,
    }


def heartbeat_task(url: str, hosts: Sequence[str], resolver: Resolve = resolve) -> Callable[[], int]:
    """Return the function of the task. `hosts` are those of the task `http`: an address that is not public has to be
    among them."""
    parts = urlsplit(url)
    if parts.scheme not in PORTS or not parts.hostname:
        raise InvalidOptions("heartbeat_url: write it as https://host/path")
    host = f"{parts.hostname}:{parts.port or PORTS[parts.scheme]}"
    caller = Caller(AllowList([host, *hosts]), resolver)

    def heartbeat() -> int:
        """Call the URL; its path is often a secret, and is in no error."""
        try:
            status = caller.call("GET", url, {"User-Agent": f"rota/{version('rota')}"}, None, SECONDS, REDIRECTS).status
        except (OSError, ValueError) as error:
            raise TaskError("failed", f"{host} cannot be reached: {type(error).__name__}") from None
        if not 200 <= status < 300:
            raise TaskError("failed", f"{host} answers {status}")
        return status

    return heartbeat
