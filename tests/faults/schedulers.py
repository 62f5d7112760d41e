"""An app whose tasks do nothing, for schedules that are put at run time."""

from typing import Any

from rota import Rota, Task


async def nothing() -> None: ...


def define(app: Rota) -> list[Task[..., ..., Any, None]]:
    """Four, so that the history of each stays within what is kept."""
    return [app.task(name=f"nothing{i}")(nothing) for i in range(4)]


app = Rota()
define(app)
