"""A Huey with a periodic task of each kind."""

from datetime import datetime
from typing import Any

from huey import MemoryHuey, crontab

app: Any = MemoryHuey("shop")
local: Any = MemoryHuey("shop", utc=False)


@app.periodic_task(crontab(minute="30", hour="2", day_of_week="7"), retries=3)  # type: ignore[untyped-decorator, unused-ignore]
def nightly() -> str:
    return "done"


@app.periodic_task(crontab(minute="*/20", hour="22-2", day="1-7", day_of_week="1"))  # type: ignore[untyped-decorator, unused-ignore]
def first_monday() -> None: ...


@app.periodic_task(crontab(day="30", month="2"))  # type: ignore[untyped-decorator, unused-ignore]
def never() -> None: ...


@app.periodic_task(lambda at: at.minute == 7)  # type: ignore[untyped-decorator, unused-ignore]
def own() -> None: ...


@app.periodic_task(crontab(minute="0"), context=True)  # type: ignore[untyped-decorator, unused-ignore]
def asks(task: Any) -> None: ...


@app.task()  # type: ignore[untyped-decorator, unused-ignore]
def plain(at: datetime) -> None: ...


def inside() -> None:
    @app.periodic_task(crontab(minute="1"))  # type: ignore[untyped-decorator, unused-ignore]
    def hidden() -> None: ...


inside()


def bare() -> None: ...


local.periodic_task(crontab(minute="15", hour="2"))(bare)
