"""The work of the alarm: the tasks of source document 002, as tasks of rota."""

from datetime import timedelta

from django.utils import timezone

from examples.django_alarm.alarm.models import Event
from rota import DailyAt, Every
from rota.django import app


@app.task(name="cleanup_old_events", schedule=DailyAt(hour=3, minute=0), timeout=600)
def cleanup_old_events(days: int = 30) -> int:
    """Delete events that are older than `days`; return their number."""
    deleted, _ = Event.objects.filter(at__lt=timezone.now() - timedelta(days=days)).delete()
    return deleted


@app.task(name="look_around", schedule=Every(seconds=3600, jitter=60))
def look_around() -> None:
    """Note that the alarm still looks. If the look before has not ended, the tick is skipped, with a warning."""
    Event.objects.create(at=timezone.now(), text="all quiet")


@app.task(name="weekly_report", schedule="weekly mon 09:00", enabled=False)
def weekly_report() -> None:
    """Switched off in the code: its schedule makes no runs."""
