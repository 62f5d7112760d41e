"""What is refused, and that the refusal says where and why."""

from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest

from rota.domain.triggers import At, Cron, DailyAt, Every, Monthly, Trigger, Weekly

BAD_CRONS = [
    ("61 * * * *", "minute field '61': 61 is not 0 to 59"),
    ("* 24 * * *", "hour field '24': 24 is not 0 to 23"),
    ("0 22-7 * * *", "hour field '22-7': the range 22-7 runs backwards; write 22-23,0-7"),
    ("0 0 * * fri-sun", "weekday field 'fri-sun': the range fri-sun runs backwards; Sunday at the end is fri-7"),
    ("*/0 * * * *", "minute field '*/0': a step of 0 gets nowhere"),
    ("*/x * * * *", "the step 'x' is not a whole number"),
    ("1//2 * * * *", "the step '/2' is not a whole number"),
    ("0 0 30 2 *", "cron '0 0 30 2 *': the day and month fields name a date that never comes"),
    ("0 0 31 4,6,9,11 *", "a date that never comes"),
    ("0 0 30W 2 *", "a date that never comes"),
    ("0 0 */14 * 1#2", "a date that never comes"),
    ("* * * * MONL", "weekday field 'MONL': write 1L, with the weekday's number"),
    ("* * * * L", "say the last of which weekday: 5L is the last Friday"),
    ("* * * * 1#6", "expected 1 to 5 after '#', not '6'"),
    ("* * * * 5#L", "expected 1 to 5 after '#', not 'L'"),
    ("0 0 15W,16 * *", "day field '15W,16': 15W stands alone, not in a list"),
    ("0 0 L-31 * *", "31 is not 1 to 30"),
    ("0 0 L-0 * *", "0 is not 1 to 30"),
    ("0 0 L-x * *", "'X' is not 1 to 30"),
    ("0 0 L-3W * *", "the workday nearest to L-3 cannot be named; there are LW and 15W"),
    ("? * * * *", "minute field '?': '?' stands alone, in the day or the weekday field"),
    ("* * ?,* * *", "'?' stands alone"),
    ("1,,2 * * * *", "minute field '1,,2': a comma has nothing on one side"),
    ("5- * * * *", "minute field '5-': expected 0 to 59"),
    ("* * * foo *", "month field 'foo': 'foo' is not 1 to 12 or jan to dec"),
    ("* * * * mond", "weekday field 'mond': 'mond' is not 0 to 7 or sun to sat; write mon"),
    ("* * * * fridayL", "write 5L, with the weekday's number"),
    ("* * * * ¹", "character 9, '¹', is not ASCII"),
    ("٣ * * * *", "character 1, '٣', is not ASCII"),
    ("* * * *", "has 4 fields; expected 5 or 6: minute hour day month weekday, or the same with seconds first"),
    ("", "has 0 fields; expected 5 or 6"),
    ("* * * * * * *", "has 7 fields"),
    ("0," * 150 + "0 * * * *", "at most 256 characters, this has 309"),
    ("@fortnightly", "'@fortnightly' is not known; there are: @hourly, @daily"),
    ("@reboot", "'@reboot' is not known"),
    ("@every 5m", "for a fixed interval write 'every 5m'"),
]


@pytest.mark.parametrize(("expr", "reason"), BAD_CRONS, ids=lambda text: text[:30])
def test_a_bad_cron_is_refused_with_place_and_reason(expr: str, reason: str) -> None:
    with pytest.raises(ValueError, match="cron") as caught:
        Cron(expr)
    assert reason in str(caught.value)


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("Europe/Pariss", "did you mean Europe/Paris"),
        ("europe/paris", "did you mean Europe/Paris"),
        ("paris", "did you mean Europe/Paris"),
        ("New York", "did you mean America/New_York"),
        ("Mars/Phobos", "names are such as 'Europe/Paris' or 'UTC'"),
        ("Europe", "there is no time zone 'Europe'"),
        ("../../etc/passwd", "there is no time zone"),
        ("localtime", "there is no time zone 'localtime'"),
        ("", "there is no time zone ''"),
    ],
)
def test_an_unknown_zone_is_refused_with_a_hint(name: str, hint: str) -> None:
    for make in (lambda: Cron("0 9 * * *", name), lambda: DailyAt(9, tz=name), lambda: DailyAt(9).in_zone(name)):
        with pytest.raises(ValueError, match="there is no time zone") as caught:
            make()
        assert hint in str(caught.value)


BAD_VALUES: list[tuple[Any, type[Exception], str]] = [
    (lambda: Cron("0 9 * * *", dst="maybe"), ValueError, "dst='maybe' is not one of vixie, skip, twice, each"),
    (lambda: Cron(5), TypeError, "a cron expression is a text such as '0 9 * * *', not 5"),  # type: ignore[arg-type]
    (lambda: Cron("0 9 * * *", 5), TypeError, "tz is a zone's name"),  # type: ignore[arg-type]
    (lambda: Every(), ValueError, "the interval is at least 0.1 s, not 0:00:00"),
    (lambda: Every(-5), ValueError, "the interval is at least 0.1 s"),
    (lambda: Every(0.05), ValueError, "the interval is at least 0.1 s"),
    (lambda: Every(float("nan")), ValueError, "seconds=nan is out of range"),
    (lambda: Every(days=float("inf")), ValueError, "days=inf is out of range"),
    (lambda: Every("5"), TypeError, "a number or a timedelta, not '5'"),  # type: ignore[arg-type]
    (lambda: Every(True), TypeError, "a number or a timedelta, not True"),
    (lambda: Every(timedelta.max, days=9), ValueError, "the interval is too long"),
    (lambda: Every(minutes=timedelta(1)), TypeError, "a timedelta stands alone"),  # type: ignore[arg-type]
    (lambda: Every(60, jitter=60), ValueError, "jitter=0:01:00 is not from 0 to less than the interval, 0:01:00"),
    (lambda: Every(60, jitter=-1), ValueError, "is not from 0 to less than the interval"),
    (lambda: Cron("* * * * *", week=54), ValueError, "week field '54': 54 is not 1 to 53"),
    (lambda: Cron("* * * * *", year="1969"), ValueError, "year field '1969': 1969 is not 1970 to 2099"),
    (
        lambda: Cron("* * * 6 *", week=1),
        ValueError,
        "the day, month, week and year fields name a date that never comes",
    ),
    (lambda: Cron("0 0 29 2 *", year="2027"), ValueError, "name a date that never comes"),
    (lambda: Cron("* * * * *", week=2.5), TypeError, "Cron: week is a number or a text"),  # type: ignore[arg-type]
    (lambda: Cron("* * * * *", year="1,2," * 50), ValueError, "Cron: year has at most 64 characters"),
    (lambda: Every(months=2), ValueError, 'Every: months= needs a time of day, such as at="09:00"'),
    (lambda: Every(days=2, tz="UTC"), ValueError, "Every: tz= needs a time of day"),
    (lambda: Every(hours=2, at="09:00"), ValueError, "at= goes with days, weeks or months"),
    (lambda: Every(at="09:00"), ValueError, "at= needs one of days, weeks and months"),
    (lambda: Every(days=1, weeks=1, at="09:00"), ValueError, "at= needs one of days, weeks and months"),
    (lambda: Every(days=1.5, at="09:00"), ValueError, "days is a whole number from 1 to 3,660, not 1.5"),
    (lambda: Every(months=121, at="09:00"), ValueError, "months is a whole number from 1 to 120, not 121"),
    (lambda: Every(days=2, at="9"), ValueError, "at='9' is not a time of day; expected such as '09:00'"),
    (lambda: Every(days=2, at="25:00"), ValueError, "at='25:00' is not a time of day"),
    (lambda: Every(days=1, at="09:00", jitter=86_400), ValueError, "is not from 0 to less than the interval"),
    (lambda: DailyAt(9, jitter=-1), ValueError, "DailyAt: jitter=-1 day, 23:59:59 is not from 0 to 1 day"),
    (lambda: Cron("* * * * *", jitter=86_401), ValueError, "Cron: jitter=1 day, 0:00:01 is not from 0 to 1 day"),
    (lambda: Weekly("mon", jitter="5"), TypeError, "Weekly: jitter is a number"),  # type: ignore[arg-type]
    (lambda: Every(60, anchor=datetime(2026, 1, 1)), ValueError, "names no zone"),
    (lambda: At(datetime(2026, 1, 1)), ValueError, "2026-01-01T00:00:00 names no zone; give it one"),
    (lambda: At("tomorrow"), TypeError, "an instant is a datetime, not 'tomorrow'"),  # type: ignore[arg-type]
    (lambda: DailyAt(24), ValueError, "DailyAt: hour=24 is not 0 to 23"),
    (lambda: DailyAt(9, 60), ValueError, "DailyAt: minute=60 is not 0 to 59"),
    (lambda: DailyAt("9"), TypeError, "DailyAt: hour is a whole number, not '9'"),  # type: ignore[arg-type]
    (lambda: DailyAt(9.5), TypeError, "hour is a whole number, not 9.5"),  # type: ignore[arg-type]
    (lambda: Weekly("mo", 9), ValueError, "Weekly: 'mo' is not a weekday; expected mon to sun"),
    (lambda: Weekly(8, 9), ValueError, "Weekly: 8 is not a weekday"),
    (lambda: Weekly([], 9), ValueError, "Weekly: name at least one weekday"),
    (lambda: Weekly([2.5], 9), TypeError, "a weekday is a name or a number"),  # type: ignore[list-item]
    (lambda: Monthly(0), ValueError, "Monthly: day=0 is not 1 to 31, or -1 for the last day"),
    (lambda: Monthly(32), ValueError, "day=32 is not 1 to 31"),
    (lambda: Monthly(-2), ValueError, "day=-2 is not 1 to 31"),
    (lambda: DailyAt(9).excluding("sun"), TypeError, "excluding() takes triggers, not 'sun'"),  # type: ignore[arg-type]
]


@pytest.mark.parametrize(("make", "kind", "reason"), BAD_VALUES, ids=[reason[:40] for _, _, reason in BAD_VALUES])
def test_a_bad_value_is_refused_where_it_is_written(make: Any, kind: type[Exception], reason: str) -> None:
    with pytest.raises(kind) as caught:
        make()
    assert reason in str(caught.value)


BAD_TEXTS = [
    ("", "'' is no trigger; expected one of: every 15m"),
    ("tomorrow", "'tomorrow' is no trigger; expected one of"),
    ("every", "'every': how often?; expected such as: every 15m"),
    ("every fortnight", "'fortnight' is not a duration; expected such as 30s, 15m, 1h30m, 2d or 500ms"),
    ("every 15", "'15' is not a duration"),
    ("every -15m", "'-15m' is not a duration"),
    ("every 1m1h", "'1m1h' is not a duration"),
    ("every 99999999999999999999d", "is too long"),
    ("every 15m jitter", "'jitter' is not understood"),
    ("every 15m sometimes yes", "'sometimes yes' is not understood"),
    ("every 15m jitter 1s jitter 2s", "'jitter 2s' is not understood"),
    ("every 15m jitter 20m", "jitter=0:20:00 is not from 0 to less than the interval"),
    ("every 2 days at", "'every 2 days at': at what time?"),
    ("every 2 days at noon", "'noon' is not a time of day"),
    ("every 2 days at 09:00 Europe/Pariss", "there is no time zone 'Europe/Pariss'"),
    ("every 2 fortnights at 09:00", "is not a weekday"),
    ("every 15m anchor noon", "'noon' is not an instant"),
    ("every 15m anchor 2026-01-01T00:00", "names no offset; end it with Z for UTC"),
    ("cron 61 * * * *", "minute field '61': 61 is not 0 to 59"),
    ("cron * * * * * Europe/Pariss", "there is no time zone 'Europe/Pariss'; did you mean Europe/Paris"),
    ("cron * * * * * dst maybe", "dst='maybe' is not one of"),
    ("cron", "has 0 fields"),
    ("5 5", "has 2 fields"),
    ("daily", "'daily': at what time?; expected such as: daily 09:00"),
    ("daily 9", "'9' is not a time of day"),
    ("daily 25:00", "hour=25 is not 0 to 23"),
    ("daily 09:00 Europe/Paris please", "'please' is too much"),
    ("weekly 09:00", "on which weekdays, at what time?"),
    ("weekly mon,foo 09:00", "'foo' is not a weekday"),
    ("weekly mon 09:00:30", "has seconds; only daily and cron take them"),
    ("monthly first 09:00", "'first' is not a day of the month"),
    ("monthly 32 09:00", "day=32 is not 1 to 31"),
    ("at noon", "'noon' is not an instant"),
    ("at 2026-11-15T09:00:00", "names no offset; end it with Z for UTC"),
    ("at", "at which instant?"),
    ("daily 09:00 excluding", "name a trigger on either side of 'excluding'"),
    ("daily 09:00 or", "name a trigger on either side of 'or'"),
    ("daily 09:00 or and daily 10:00", "'and daily 10:00' is no trigger"),
    ("daily 09:00 and", "name a trigger on either side of 'and'"),
    ("(" * 2000 + "daily 09:00" + ")" * 2000, "more than 16 brackets inside each other"),
    ("daily 09:00 excluding (weekly sun 09:00", "the brackets do not match"),
    ("every 15m" + " " * 5000, "at most 4096 characters"),
]


@pytest.mark.parametrize(("text", "reason"), BAD_TEXTS, ids=lambda text: text[:30])
def test_a_bad_text_is_refused_and_told_what_was_expected(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=r".") as caught:
        Trigger.parse(text)
    assert reason in str(caught.value)


NOON = datetime(2026, 1, 1, 12)
TRIGGERS = [Cron("0 9 * * *"), DailyAt(9), Every(60, anchor=NOON.replace(tzinfo=UTC)), At(NOON.replace(tzinfo=UTC))]


@pytest.mark.parametrize("trigger", [*TRIGGERS, TRIGGERS[0].excluding(TRIGGERS[3])], ids=str)
def test_an_instant_without_a_zone_is_refused(trigger: Trigger) -> None:
    for ask in (trigger.next_after, trigger.previous_before, lambda at: trigger.upcoming(at, 3)):
        with pytest.raises(ValueError, match="names no zone"):
            ask(NOON)
        with pytest.raises(TypeError, match="an instant is a datetime"):
            ask(date(2026, 1, 1))  # type: ignore[arg-type]


def test_a_text_that_is_no_text_is_refused() -> None:
    with pytest.raises(TypeError, match="a trigger's text is a str, not None"):
        Trigger.parse(None)  # type: ignore[arg-type]
