"""Triggers: what a text means in words, when it fires, and what may be wrong with it or with its schedule."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from msgspec import Struct

from rota.domain.lint import Finding, LintTarget, lint
from rota.domain.schedule import Schedule
from rota.domain.timing import moment
from rota.domain.triggers import Trigger
from rota.domain.triggers.words import WEEKDAYS
from rota.domain.triggers.zones import zone_name
from rota.errors import InvalidOptions
from rota.views.schedules import own_zone, policy_of
from rota.views.values import iso


class FireView(Struct, frozen=True):
    """One time at which a trigger fires, in its zone and in UTC; `left` are the seconds until then."""

    weekday: str
    local: str
    utc: str
    left: float


class TriggerView(Struct, frozen=True, rename={"since": "from"}):
    text: str
    words: str
    zone: str
    since: str
    fires: tuple[FireView, ...]
    findings: tuple[Finding, ...]


def read_trigger(text: str, tz: str | None) -> tuple[Trigger, ZoneInfo]:
    """Return the trigger in its zone, and the zone to show it in. `tz` is for a trigger that names no zone."""
    try:
        zone = zone_name(tz)
        trigger = Trigger.parse(text)
        if zone is not None:
            trigger = trigger.in_zone(zone)
    except ValueError as error:
        raise InvalidOptions(str(error)) from None
    return trigger, ZoneInfo(zone or own_zone(trigger) or "UTC")


def trigger_view(trigger: Trigger, zone: ZoneInfo, tz: str | None, now: datetime, count: int) -> TriggerView:
    """Return what `trigger` means, as if it were `now`."""
    fires = tuple(_fire(fire, now, zone) for fire in _fires(trigger, now, count))
    findings = tuple(lint(LintTarget(trigger=trigger, zone=tz), now))
    return TriggerView(str(trigger), trigger.describe(), zone.key, iso(now.timestamp()), fires, findings)


def schedule_findings(schedule: Schedule, tz: str, now: float, duration: float | None = None) -> list[Finding]:
    """Return what may be wrong with `schedule`. `duration` are the usual seconds of its runs."""
    try:
        trigger = Trigger.parse(schedule.trigger)
    except ValueError as error:
        return [Finding("unreadable", "error", f"Its trigger cannot be read: {error}.", "Put it again.")]
    if schedule.deadline is not None:  # it makes no runs: only its times can be wrong
        return lint(LintTarget(trigger=trigger, zone=tz), moment(now))
    policy = policy_of(schedule)
    target = LintTarget(
        trigger=trigger if schedule.anchor is None else trigger.anchored(moment(schedule.anchor)),
        zone=tz,
        overlap=schedule.overlap,
        catch_up=schedule.catch_up,
        grace=schedule.grace,
        duration=duration,
        timeout=policy.timeout,
        retry=policy.retry,
    )
    return lint(target, moment(now))


def _fires(trigger: Trigger, now: datetime, count: int) -> list[datetime]:
    try:
        return trigger.anchored(now).upcoming(now, count)
    except ValueError:  # exclusions leave nothing; lint says so
        return []


def _fire(fire: datetime, now: datetime, zone: ZoneInfo) -> FireView:
    local = fire.astimezone(zone)
    return FireView(
        weekday=WEEKDAYS[local.isoweekday() % 7],
        local=local.isoformat(timespec="milliseconds" if fire.microsecond else "seconds"),
        utc=iso(fire.astimezone(UTC).timestamp()),
        left=(fire - now).total_seconds(),
    )
