"""Texts and triggers, both ways."""

import copy
from contextlib import suppress
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from rota.domain.triggers import At, Cron, DailyAt, Every, Monthly, Trigger, Weekly
from tests.domain.triggers.strategies import ZONES, crons

PARIS = "Europe/Paris"
NEW_YEAR = datetime(2026, 1, 1, tzinfo=UTC)

# A trigger and its own text, which must read back as the trigger.
SPELLED = [
    (Every(minutes=15), "every 15m"),
    (Every(minutes=15, jitter=30), "every 15m jitter 30s"),
    (Every(hours=1, minutes=30, anchor=NEW_YEAR), "every 1h30m anchor 2026-01-01T00:00:00Z"),
    (Every(days=7), "every 7d"),
    (Every(weeks=2), "every 14d"),
    (Every(days=2, at="09:00", tz=PARIS), "every 2 days at 09:00 Europe/Paris"),
    (Every(days=1, at="9:00"), "every 1 day at 09:00"),
    (Every(weeks=1, at="09:00:30", jitter=60), "every 1 week at 09:00:30 jitter 1m"),
    (
        Every(months=3, at="09:00", tz="UTC", jitter=60, anchor=NEW_YEAR),
        "every 3 months at 09:00 UTC jitter 1m anchor 2026-01-01T00:00:00Z",
    ),
    (Every(90), "every 1m30s"),
    (Every(timedelta(milliseconds=100)), "every 0.1s"),
    (Every(1.000001), "every 1.000001s"),
    (Cron("*/15 7-22 * * *", PARIS), "cron */15 7-22 * * * Europe/Paris"),
    (Cron("0 9 * * *"), "cron 0 9 * * *"),
    (Cron("  0  9 * *\t* "), "cron 0 9 * * *"),
    (Cron("0 0 9 * * mon-fri"), "cron 0 0 9 * * mon-fri"),
    (Cron("0 0 9 * * 5L", "UTC"), "cron 0 0 9 * * 5L UTC"),
    (Cron("30 2 * * *", PARIS, "skip"), "cron 30 2 * * * Europe/Paris dst skip"),
    (Cron("30 2 * * *", dst="twice"), "cron 30 2 * * * dst twice"),
    (Cron("30 2 * * *", PARIS, "each"), "cron 30 2 * * * Europe/Paris dst each"),
    (Cron("0 9 * * mon", week="*/2", year=2027), "cron 0 9 * * mon week */2 year 2027"),
    (
        Cron("0 9 L-3 * *", PARIS, "skip", week="10-20", year="2027-2030,2040", jitter=60),
        "cron 0 9 L-3 * * Europe/Paris dst skip week 10-20 year 2027-2030,2040 jitter 1m",
    ),
    (Cron("0 9 * january monday-friday"), "cron 0 9 * january monday-friday"),
    (Cron("@daily", PARIS), "cron @daily Europe/Paris"),
    (DailyAt(9, tz=PARIS), "daily 09:00 Europe/Paris"),
    (DailyAt(9, 0, 30), "daily 09:00:30"),
    (Weekly(["thu", "mon"], 9), "weekly mon,thu 09:00"),
    (Weekly("Sunday", 23, 5, tz="UTC"), "weekly sun 23:05 UTC"),
    (Monthly(-1, 23, 30), "monthly -1 23:30"),
    (Monthly(31), "monthly 31 00:00"),
    (At(datetime(2026, 11, 15, 9, tzinfo=UTC)), "at 2026-11-15T09:00:00Z"),
    (At(datetime(2026, 11, 15, 9, 0, 0, 5, tzinfo=UTC)), "at 2026-11-15T09:00:00.000005Z"),
    (DailyAt(9).excluding(Weekly("sun", 9)), "daily 09:00 excluding weekly sun 09:00"),
    (
        DailyAt(9).excluding(Weekly("sun", 9), At(NEW_YEAR)),
        "daily 09:00 excluding weekly sun 09:00 excluding at 2026-01-01T00:00:00Z",
    ),
    (
        DailyAt(9).excluding(Weekly("sun", 9).excluding(Monthly(1, 9))),
        "daily 09:00 excluding (weekly sun 09:00 excluding monthly 1 09:00)",
    ),
    (DailyAt(9, tz=PARIS, jitter=300), "daily 09:00 Europe/Paris jitter 5m"),
    (Weekly("mon", 9, jitter=0.5), "weekly mon 09:00 jitter 0.5s"),
    (Monthly(1, jitter=timedelta(hours=1)), "monthly 1 00:00 jitter 1h"),
    (Cron("30 2 * * *", PARIS, "skip", jitter=30), "cron 30 2 * * * Europe/Paris dst skip jitter 30s"),
    (At(NEW_YEAR, jitter=30), "at 2026-01-01T00:00:00Z jitter 30s"),
    (DailyAt(9) | Weekly("sun", 10) | At(NEW_YEAR), "daily 09:00 or weekly sun 10:00 or at 2026-01-01T00:00:00Z"),
    (DailyAt(9) & Cron("* * 1-7 * *", PARIS), "daily 09:00 and cron * * 1-7 * * Europe/Paris"),
    (
        (DailyAt(9) | DailyAt(17)) & Cron("* * 1-7 * *"),
        "(daily 09:00 or daily 17:00) and cron * * 1-7 * *",
    ),
    (
        DailyAt(9) | (Every(minutes=15) & Cron("* 10-12 * * *")).excluding(At(NEW_YEAR)),
        "daily 09:00 or ((every 15m and cron * 10-12 * * *) excluding at 2026-01-01T00:00:00Z)",
    ),
]

# Other texts that mean the same.
ALSO = [
    ("*/5 * * * *", Cron("*/5 * * * *")),
    ("0 9 * * 1-5 Europe/Paris", Cron("0 9 * * 1-5", PARIS)),
    ("30 0 9 * * 1-5", Cron("30 0 9 * * 1-5")),
    ("30 0 9 * * MON,5L,3#2 UTC", Cron("30 0 9 * * MON,5L,3#2", "UTC")),
    ("@daily", Cron("@daily")),
    ("@hourly Europe/Paris", Cron("@hourly", PARIS)),
    ("EVERY 15M JITTER 30S", Every(minutes=15, jitter=30)),
    ("every 15m anchor 2026-01-01T01:00:00+01:00 jitter 30s", Every(minutes=15, jitter=30, anchor=NEW_YEAR)),
    ("every 500ms", Every(0.5)),
    ("every 90m", Every(minutes=90)),
    ("  daily   9:00  ", DailyAt(9)),
    ("Weekly Monday,7 09:00", Weekly([1, 0], 9)),
    ("at 2026-11-15T10:00:00+01:00", At(datetime(2026, 11, 15, 9, tzinfo=UTC))),
    ("cron 0 9 * * * Etc/GMT+5", Cron("0 9 * * *", "Etc/GMT+5")),
    ("*/5 * * * * UTC JITTER 1m", Cron("*/5 * * * *", "UTC", jitter=60)),
    ("every Friday at 09:00 UTC jitter 1m", Weekly("fri", 9, tz="UTC", jitter=60)),
    ("every 2d at 9:00 UTC", Every(days=2, at="09:00", tz="UTC")),
    ("every 2 Days at 09:00 anchor 2026-01-01T00:00:00Z", Every(days=2, at="09:00", anchor=NEW_YEAR)),
    ("every week at 09:00", Every(weeks=1, at="09:00")),
    ("every month at 09:00 UTC", Every(months=1, at="09:00", tz="UTC")),
    ("every 2 weeks", Every(days=14)),
    ("0 9 * * * UTC YEAR 2027 WEEK 1,2", Cron("0 9 * * *", "UTC", week="1,2", year="2027")),
    ("daily 09:00 OR (daily 10:00)", DailyAt(9) | DailyAt(10)),
    ("daily 09:00 or daily 09:00", DailyAt(9)),
    ("every mon and thu at 09:00 and daily 09:00", Weekly(["mon", "thu"], 9) & DailyAt(9)),
    ("daily 09:00 or daily 10:00 and */5 * * * *", DailyAt(9) | (DailyAt(10) & Cron("*/5 * * * *"))),
    ("daily 09:00 and daily 9:00 UTC excluding @daily", DailyAt(9) & DailyAt(9, tz="UTC").excluding(Cron("@daily"))),
    ("cron 0 9 * * * Japan DST Skip", Cron("0 9 * * *", "Japan", "skip")),
]


@pytest.mark.parametrize(("trigger", "text"), SPELLED, ids=lambda value: str(value))
def test_a_trigger_has_one_text_which_reads_back(trigger: Trigger, text: str) -> None:
    assert str(trigger) == trigger.to_text() == text
    again = Trigger.parse(text)
    assert again == trigger
    assert hash(again) == hash(trigger)
    assert type(again) is type(trigger)


@pytest.mark.parametrize(("text", "trigger"), ALSO, ids=lambda value: str(value))
def test_other_texts_are_read_too(text: str, trigger: Trigger) -> None:
    assert Trigger.parse(text) == trigger


@pytest.mark.parametrize(("trigger", "text"), SPELLED, ids=lambda value: str(value))
def test_a_trigger_is_its_own_copy(trigger: Trigger, text: str) -> None:
    assert copy.deepcopy(trigger) is copy.copy(trigger) is trigger


tz = st.one_of(st.none(), st.sampled_from(ZONES))
hours, minutes = st.integers(0, 23), st.integers(0, 59)
instants = st.datetimes(
    datetime(1971, 1, 1), datetime(2100, 1, 1), timezones=st.sampled_from([UTC, timezone(timedelta(hours=5.5))])
)


jitters = st.one_of(st.just(0), st.timedeltas(timedelta(0), timedelta(days=1)))


@st.composite
def everys(draw: st.DrawFn) -> Every:
    interval = draw(st.timedeltas(timedelta(milliseconds=100), timedelta(days=4000)))
    jitter = draw(st.one_of(st.just(timedelta(0)), st.timedeltas(timedelta(0), interval - timedelta(microseconds=1))))
    return Every(interval, jitter=jitter, anchor=draw(st.one_of(st.none(), instants)))


@st.composite
def some_crons(draw: st.DrawFn) -> Cron:
    try:
        return Cron(
            draw(crons()), draw(tz), draw(st.sampled_from(["vixie", "skip", "twice", "each"])), jitter=draw(jitters)
        )
    except ValueError as error:
        assume("never comes" not in str(error))
        raise


simple: st.SearchStrategy[Trigger] = st.one_of(
    some_crons(),
    everys(),
    st.builds(
        lambda unit, count, at, tz, jitter, anchor: Every(
            **{unit: count}, at=at.replace(microsecond=0), tz=tz, jitter=min(jitter, timedelta(hours=20)), anchor=anchor
        ),
        st.sampled_from(["days", "weeks", "months"]),
        st.integers(1, 120),
        st.times(),
        tz,
        st.timedeltas(timedelta(0), timedelta(days=1)),
        st.one_of(st.none(), instants),
    ),
    st.builds(At, instants, jitter=jitters),
    st.builds(DailyAt, hours, minutes, minutes, tz, jitter=jitters),
    st.builds(Weekly, st.sets(st.integers(0, 7), min_size=1), hours, minutes, tz, jitter=jitters),
    st.builds(Monthly, st.one_of(st.just(-1), st.integers(1, 31)), hours, minutes, tz, jitter=jitters),
)
triggers: st.SearchStrategy[Trigger] = st.recursive(
    simple,
    lambda inner: st.one_of(
        st.builds(lambda a, b: a.excluding(*b), inner, st.lists(inner, max_size=2)),
        st.builds(lambda a, b: a | b, inner, inner),
        st.builds(lambda a, b: a & b, inner, inner),
    ),
    max_leaves=5,
)


@given(triggers)
@settings(max_examples=150)
def test_every_trigger_reads_back_from_its_text(trigger: Trigger) -> None:
    again = Trigger.parse(str(trigger))
    assert again == trigger
    assert str(again) == str(trigger)
    assert hash(again) == hash(trigger)
    assert repr(again) == repr(trigger)
    assert trigger.describe()


@given(st.one_of(st.text(max_size=60), st.text(alphabet="*/,-#LW?@() 0123456789everycronmondailyandor:", max_size=40)))
def test_any_other_text_is_refused_with_a_value_error(text: str) -> None:
    with suppress(ValueError):
        trigger = Trigger.parse(text)
        assert Trigger.parse(str(trigger)) == trigger
