"""An app of Celery with a schedule of each kind."""

from datetime import datetime, timedelta
from typing import Any

from celery import Celery  # type: ignore[import-untyped]
from celery.schedules import crontab, schedule, solar  # type: ignore[import-untyped]

app: Any = Celery("shop", broker="memory://")
app.conf.timezone = "Europe/Paris"


@app.task(name="shop.add")  # type: ignore[untyped-decorator, unused-ignore]
def add(a: int, b: int = 0) -> int:
    return a + b


@app.task(name="shop.kept", acks_late=True)  # type: ignore[untyped-decorator, unused-ignore]
def kept() -> None: ...


class Moody(schedule):  # type: ignore[misc]
    """A schedule of the project's own."""


sunset: Any = solar.__new__(solar)  # a whole one needs a library of astronomy
sunset.__dict__.update(event="sunset", lat=48.9, lon=2.3)
app.conf.beat_schedule = {
    "nightly": {"task": "shop.add", "schedule": crontab(minute=30, hour=2), "args": (2, 3)},
    "office": {"task": "shop.kept", "schedule": crontab(minute="*/20", hour={8, 9}, day_of_week="mon-fri")},
    "often": {"task": "shop.add", "schedule": 90.0, "kwargs": {"a": 1}, "options": {"queue": "slow", "expires": 45}},
    "spans": {"task": "other.job", "schedule": timedelta(hours=2), "options": {"priority": 3, "exchange": "x"}},
    "sunset": {"task": "shop.add", "schedule": sunset},
    "moody": {"task": "shop.add", "schedule": Moody(10)},
    "late": {"task": "shop.add", "schedule": 60, "options": {"countdown": 5}},
    "over": {"task": "shop.add", "schedule": 60, "options": {"expires": datetime(2020, 1, 1)}},
    "odd": {"task": "shop.add", "schedule": 60, "args": (object(),)},
    "cleanup": {"task": "celery.backend_cleanup", "schedule": crontab(minute="0", hour="4")},
}


@app.on_after_finalize.connect  # type: ignore[untyped-decorator, unused-ignore]
def more(sender: Any, **_: Any) -> None:
    sender.add_periodic_task(crontab(minute=0, hour=3, day_of_month="1-7", day_of_week="mon"), kept.s(), name="first")
