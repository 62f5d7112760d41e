"""Triggers in words."""

from datetime import UTC, datetime, timedelta

import pytest

from rota.domain.triggers import At, Cron, DailyAt, Every, Monthly, Trigger, Weekly

CRONS = {
    "* * * * *": "every minute",
    "*/15 * * * *": "every 15 minutes",
    "0,15,30,45 * * * *": "every 15 minutes",
    "5/15 * * * *": "every 15 minutes, from 5 past the hour",
    "0 * * * *": "every hour",
    "5 * * * *": "every hour at minute 5",
    "*/25 * * * *": "every hour at minutes 0, 25 and 50",
    "*/15 7-22 * * *": "every 15 minutes from 07:00 to 22:45",
    "* 9 * * *": "every minute from 09:00 to 09:59",
    "*/30 9,12 * * *": "every 30 minutes in the hours 9 and 12",
    "0 */2 * * *": "every 2 hours",
    "30 */6 * * *": "every 6 hours from 00:30",
    "0 8-18 * * *": "every hour from 08:00 to 18:00",
    "0 8-18/2 * * *": "every 2 hours from 08:00 to 18:00",
    "0 9 * * *": "every day at 09:00",
    "0 9,12,18 * * *": "every day at 09:00, 12:00 and 18:00",
    "0 0,12 * * *": "every day at 00:00 and 12:00",
    "15,45 9-11 * * *": "every 30 minutes from 09:15 to 11:45",
    "1,2,3,7 9-14 * * *": "every day at minutes 1 to 3 and 7 past the hours 9 to 14",
    "0 9 * * 1-5": "Monday to Friday at 09:00",
    "0 9 * * 1,4": "every Monday and Thursday at 09:00",
    "0 9 * * 6,7": "every Saturday and Sunday at 09:00",
    "0 9 * * sun": "every Sunday at 09:00",
    "*/15 7-22 * * 1-5": "every 15 minutes from 07:00 to 22:45, Monday to Friday",
    "0 9 1 * *": "on the 1st of every month at 09:00",
    "0 9 1,15 * *": "on the 1st and 15th of every month at 09:00",
    "0 9 31 * *": "on the 31st of every month that has one at 09:00",
    "0 9 */2 * *": "on every 2nd day from the 1st of every month at 09:00",
    "0 0 1 1 *": "on the 1st of January at 00:00",
    "0 0 1 1,7 *": "on the 1st of January and July at 00:00",
    "0 9 * 6-8 *": "every day in June to August at 09:00",
    "0 9 * 6-8 1": "every Monday in June to August at 09:00",
    "30 23 L * *": "on the last day of every month at 23:30",
    "0 9 L-3 * *": "on the 4th-to-last day of every month at 09:00",
    "0 9 L-2,L * *": "on the 3rd-to-last day and the last day of every month at 09:00",
    "0 9 * january monday": "every Monday in January at 09:00",
    "0 9 LW * *": "on the last workday of every month at 09:00",
    "0 9 15W * *": "on the workday nearest the 15th of every month at 09:00",
    "0 9 * * 5L": "on the last Friday of every month at 09:00",
    "0 9 * * 1#2": "on the second Monday of every month at 09:00",
    "0 9 * * 3,1#1": "every Wednesday and on the first Monday of every month at 09:00",
    "0 9 13 * 5": "on the 13th of every month and every Friday at 09:00",
    "0 9 */2 * 5": "on every 2nd day from the 1st of every month if it is a Friday at 09:00",
    "0 9 1-31 * 1": "every day at 09:00",
    "* * * * * *": "every second",
    "*/10 * * * * *": "every 10 seconds",
    "7 * * * * *": "every minute at second 7",
    "30 0 9 * * *": "every day at 09:00:30",
    "0 0 9 * * *": "every day at 09:00",
    "*/20 */5 9-17 * * 1-5": (
        "every 20 seconds, in these minutes: every 5 minutes from 09:00 to 17:55, Monday to Friday"
    ),
    "@hourly": "every hour",
    "@daily": "every day at 00:00",
    "@weekly": "every Sunday at 00:00",
    "@monthly": "on the 1st of every month at 00:00",
    "@yearly": "on the 1st of January at 00:00",
}


@pytest.mark.parametrize(("expr", "words"), CRONS.items(), ids=CRONS)
def test_a_cron_in_words(expr: str, words: str) -> None:
    assert Cron(expr).describe() == words


NEW_YEAR = datetime(2026, 1, 1, tzinfo=UTC)
OTHERS: list[tuple[Trigger, str]] = [
    (Cron("*/15 7-22 * * *", "Europe/Paris"), "every 15 minutes from 07:00 to 22:45, Paris time"),
    (DailyAt(9, tz="UTC"), "every day at 09:00 UTC"),
    (Cron("*/15 * * * *", "UTC"), "every 15 minutes, UTC"),
    (DailyAt(), "every day at 03:00"),
    (Weekly(["mon", "thu"], 9, tz="Asia/Tokyo"), "every Monday and Thursday at 09:00, Tokyo time"),
    (Monthly(-1, 23, 30), "on the last day of every month at 23:30"),
    (Every(minutes=15), "every 15 minutes"),
    (Every(hours=1), "every hour"),
    (Every(minutes=90), "every 1 hour 30 minutes"),
    (Every(minutes=15, jitter=30), "every 15 minutes, up to 30 seconds late"),
    (Every(timedelta(seconds=0.5)), "every 0.5 seconds"),
    (At(NEW_YEAR), "once, at 2026-01-01 00:00 UTC"),
    (At(NEW_YEAR + timedelta(seconds=5)), "once, at 2026-01-01 00:00:05 UTC"),
    (DailyAt(9, tz="Europe/Paris", jitter=300), "every day at 09:00, Paris time, up to 5 minutes late"),
    (Every(days=2, at="09:00", tz="Europe/Paris"), "every 2 days at 09:00, Paris time"),
    (Every(months=1, at="09:00"), "every month at 09:00"),
    (Cron("0 9 * * mon", week="10-20"), "every Monday at 09:00, in ISO weeks 10 to 20"),
    (Cron("*/5 * * * *", "UTC", year="2027,2029"), "every 5 minutes, UTC, in 2027 and 2029"),
    (DailyAt(9) | Weekly("sun", 10), "every day at 09:00 or every Sunday at 10:00"),
    (DailyAt(9) & Monthly(1, 9), "every day at 09:00, only if also on the 1st of every month at 09:00"),
    (
        (DailyAt(9) | DailyAt(10)).excluding(Weekly("sun", 9)),
        "(every day at 09:00 or every day at 10:00), except every Sunday at 09:00",
    ),
    (DailyAt(9).excluding(Weekly("sun", 9)), "every day at 09:00, except every Sunday at 09:00"),
]


@pytest.mark.parametrize(("trigger", "words"), OTHERS, ids=lambda value: str(value))
def test_a_trigger_in_words(trigger: Trigger, words: str) -> None:
    assert trigger.describe() == words
