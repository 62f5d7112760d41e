"""--until: when a freeze or the pause of a task ends by itself."""

from typing import Annotated
from zoneinfo import ZoneInfo

from cyclopts import Parameter

from rota.cli.options.target import Target
from rota.cli.options.times import read_until
from rota.client.client import Client

Until = Annotated[
    str | None, Parameter(help="End by itself: after 90s, 5m, 2h or 1d, or at an instant as 2026-11-15T09:00Z.")
]


async def instant_of(client: Client, text: str | None, target: Target) -> float | None:
    """Read --until: `2h` is 2 hours from now by the store's clock."""
    if text is None:
        return None
    return read_until(text, "--until", ZoneInfo(target.tz()), await client.now()).timestamp()
