"""For each finding a schedule that has it and one, nearly the same, that has not."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

from rota.domain.lint import Finding, LintTarget, lint
from rota.domain.policy import Retry
from rota.domain.triggers import Trigger

NOW = datetime(2026, 11, 15, 12, tzinfo=UTC)


class Case(NamedTuple):
    code: str
    wrong: str
    right: str
    says: str
    policies: Mapping[str, Any] = {}
    """Of both, or of the wrong one if `right_policies` are given."""
    right_policies: Mapping[str, Any] | None = None


def findings(text: str, **policies: Any) -> dict[str, Finding]:
    return {finding.code: finding for finding in lint(LintTarget(trigger=Trigger.parse(text), **policies), NOW)}


CASES = [
    # -- does it fire
    Case("past", "at 2026-11-15T12:00:00Z", "at 2026-11-15T12:00:01Z", "2026-11-15T12:00:00Z, has passed"),
    Case("never", "daily 09:00 excluding daily 09:00", "daily 09:00 excluding daily 10:00", "never fires"),
    Case("never", "daily 09:00 and daily 10:00", "daily 09:00 and 0 * * * *", "never fires"),
    Case("short-months", "daily 09:00 or 0 0 31 * *", "daily 09:00 or 0 0 28 * *", "a day 31: February"),
    Case("rare", "0 0 29 2 *", "0 0 28 2 *", "not fire before 2028-02-29, in 1.3 years"),
    Case(
        "excludes-nothing",
        "daily 09:00 excluding weekly sun 00:00",
        "daily 09:00 excluding cron * * * * sun",
        "'weekly sun 00:00' excludes nothing",
    ),
    Case(
        "excludes-nothing",
        "* * * * * excluding at 2026-12-24T18:00:30Z",
        "* * * * * excluding at 2026-12-24T18:00:00Z",
        "'at 2026-12-24T18:00:30Z' excludes nothing",
    ),
    # -- days
    Case("day-or-weekday", "0 9 13 * fri", "0 9 13 * *", "day 13 or weekday fri, not only on those that match both"),
    Case("day-or-weekday", "0 9 1-31 * mon", "0 9 * * mon", "is every day: one of the two fields holds all"),
    Case("day-and-weekday", "0 9 */2 * mon", "0 9 */2 * *", "match day */2 and weekday mon both"),
    Case("short-months", "0 0 31 * *", "0 0 31 1,3,12 *", "February, April, June, September and November are left"),
    Case("short-months", "0 0 15,30 * *", "0 0 15,28 * *", "a day 30: February is left out"),
    Case("short-months", "0 0 29 * *", "0 0 29 2 *", "February (but for leap years) is left out"),
    Case("short-months", "0 0 31W * *", "0 0 LW * *", "a day 31: February"),
    Case("weekday-numbers", "0 9 * * 0-4", "0 9 * * 1-5", "0-4 in the weekday field is Sunday to Thursday"),
    Case("weekday-numbers", "0 9 * * 2-6", "0 9 * * tue-sat", "2-6 in the weekday field is Tuesday to Saturday"),
    Case("six-fields", "*/5 * * * * *", "*/5 * * * *", "the first is the seconds, so this fires every 5 seconds"),
    Case("six-fields", "0 9 * * * *", "0 0 9 * * *", "so this fires every hour at minute 9"),
    # -- steps
    Case("uneven-step", "*/7 * * * *", "*/6 * * * *", "minute 0 comes only 4 minutes after minute 56, not 7"),
    Case("uneven-step", "*/7 4-23 * * *", "*/7 4 * * *", "minute 0 comes only 4 minutes after minute 56"),
    Case("uneven-step", "*/25 * * * * *", "*/20 * * * * *", "second 0 comes only 10 seconds after second 50"),
    Case("uneven-step", "0 */5 * * *", "0 */5 * * mon", "hour 0 comes only 4 hours after hour 20, not 5"),
    Case("uneven-step", "0 0 */2 * *", "0 0 */2 6 *", "in a month of 31 days, day 1 comes only 1 day after day 31"),
    Case("uneven-step", "0 0 1 */5 *", "0 0 1 */4 *", "month 1 comes only 2 months after month 11, not 5"),
    Case("uneven-step", "0 0 * * */2", "0 0 * * 1-5/2", "weekday 0 comes only 1 day after weekday 6, not 2"),
    Case("uneven-step", "5,2/7 * * * *", "5,2-50/7 * * * *", "minute 2 comes only 4 minutes after minute 58"),
    Case("step-too-long", "*/90 * * * *", "*/30 * * * *", "*/90 in the minute field matches 0 alone"),
    Case("step-too-long", "30/45 * * * *", "10/45 * * * *", "30/45 in the minute field matches 30 alone"),
    # -- clocks
    Case("clock-gap", "30 2 * * * Europe/Paris", "30 3 * * * Europe/Paris", "no 02:30: rota fires at 03:00 instead"),
    Case("clock-gap", "30 2 * * * Europe/Paris dst skip", "30 2 * * *", "no 02:30: rota does not fire then"),
    Case("clock-gap", "*/5 2 * * * Europe/Paris", "*/5 1-4 * * * Europe/Paris", "no 02:00: rota does not fire then"),
    Case("clock-gap", "weekly sun 02:30 Europe/Paris", "weekly mon 02:30 Europe/Paris", "On 2027-03-28 the clock"),
    Case("clock-fold", "daily 02:30 Europe/Paris", "daily 02:30 UTC", "02:30 comes twice: rota fires the first time"),
    Case("clock-fold", "0 1 * * * America/New_York dst twice", "0 2 * * * America/New_York", "rota fires both times"),
    Case("clock-fold", "45 1 * * * Australia/Lord_Howe", "15 1 * * * Australia/Lord_Howe", "from 02:00 to 01:30"),
    Case("drift", "every 1d", "every 36h", "2027-03-28 the clock in Europe/Paris", {"zone": "Europe/Paris"}),
    Case("drift", "every 1d", "every 1d", "fires an hour later", {"zone": "Europe/Paris"}, {"zone": "Asia/Tokyo"}),
    Case("no-time-of-day", "every 1d", "every 1d anchor 2026-01-01T09:00:00Z", "at which the schedule was first put"),
    Case("no-zone", "0 9 * * *", "0 9 * * * UTC", "names no time zone, so its times are UTC"),
    Case("no-zone", "0 * * * mon", "0 * * * *", "names no time zone"),
    Case("no-zone", "0 9 * * *", "0 9 * * *", "names no time zone", {}, {"zone": "Europe/Paris"}),
    # -- pace
    Case("overrun", "every 15m", "every 20m", "takes 20 minutes, but fires can be 15 minutes", {"duration": 1200}),
    Case("overrun", "*/15 * * * *", "*/20 * * * *", "that meet a running run are skipped", {"duration": 1200}),
    Case("overrun", "0,5 * * * *", "0,30 * * * *", "start late", {"duration": 600, "overlap": "queue"}),
    Case("overrun", "every 5m", "every 10m", "pile up without end", {"duration": 600, "overlap": "queue"}),
    Case("overrun", "every 4m", "every 10m", "up to 3 runs go on side", {"duration": 600, "overlap": "allow"}),
    Case("jitter-overrun", "every 10m jitter 5m", "every 10m jitter 1m", "as little as 5 minutes", {"duration": 480}),
    Case("jitter-grace", "every 10m jitter 5m", "every 10m jitter 1m", "its grace of 1 minute", {"grace": 60}),
    Case("grace-interval", "*/15 * * * *", "0 * * * *", "longer than the 15 minutes between", {"grace": 3600}),
    Case("grace-interval", "daily 09:00 Europe/Paris", "weekly mon 09:00", "the 1 day between", {"grace": 86_401}),
    Case(
        "catch-up-overlap",
        "daily 09:00",
        "daily 09:00",
        'overlap="skip" drops all that meet a running one',
        {"catch_up": "all", "overlap": "skip"},
        {"catch_up": "all"},
    ),
    Case(
        "catch-up-grace",
        "0 * * * *",
        "0 * * * *",
        "missed more than 10 minutes ago (grace)",
        {"catch_up": "all", "grace": 600},
        {"catch_up": "latest", "grace": 600},
    ),
    Case(
        "timeout-duration",
        "daily 09:00",
        "daily 09:00",
        "The timeout of 1 minute is shorter than the 1 minute 30 seconds",
        {"timeout": 60, "duration": 90},
        {"timeout": 90, "duration": 60},
    ),
    Case("timeout-interval", "every 15m", "every 30m", "makes the next ones be skipped until then", {"timeout": 1800}),
    Case(
        "timeout-interval", "every 15m", "every 30m", "makes the next ones wait", {"timeout": 1800, "overlap": "queue"}
    ),
    Case(
        "retries-interval",
        "every 30s",
        "every 31s",
        "through its 5 retries lasts 31 seconds",
        {"retry": Retry(5, delay=1.0)},
    ),
    Case(
        "retries-interval",
        "every 30s",
        "every 40s",
        "through its 1 retry lasts 31 seconds",
        {"retry": Retry(1, delay=1.0), "duration": 15},
    ),
]
