"""Random cron expressions, zones and instants; half of the instants lie near a clock change."""

from datetime import UTC, datetime, timedelta

from hypothesis import strategies as st

from tests.domain.triggers.oracle import changes

ZONES = [
    "UTC",
    "Europe/Paris",
    "America/New_York",
    "Africa/Cairo",
    "America/Santiago",
    "Australia/Lord_Howe",
    "Antarctica/Troll",
    "Pacific/Apia",
    "America/St_Johns",
    "Africa/Casablanca",
    "Asia/Kolkata",
    "Asia/Pyongyang",
]


@st.composite
def items(draw: st.DrawFn, low: int, high: int) -> str:
    a = draw(st.integers(low, high))
    b = draw(st.integers(a, high))
    step = draw(st.integers(1, 20))
    return draw(st.sampled_from(["*", f"*/{step}", str(a), str(a), f"{a}-{b}", f"{a}-{b}/{step}", f"{a}/{step}"]))


def lists(low: int, high: int) -> st.SearchStrategy[str]:
    return st.lists(items(low, high), min_size=1, max_size=3).map(",".join)


@st.composite
def days(draw: st.DrawFn) -> tuple[str, str]:
    kind = draw(st.integers(0, 5))
    if kind < 2:
        return "*", "*"
    day = draw(st.one_of(lists(1, 31), st.sampled_from(["L", "LW", "1", "15", "31"])))
    weekday = draw(st.one_of(lists(0, 7), st.sampled_from(["1", "1-5", "5L", "1#2", "0#5", "7", "sun", "MON-FRI"])))
    return [(day, "*"), ("*", weekday), (day, weekday), (day, weekday)][kind - 2]


@st.composite
def crons(draw: st.DrawFn, seconds: bool = True) -> str:
    day, weekday = draw(days())
    month = draw(st.one_of(st.just("*"), st.just("*"), lists(1, 12), st.sampled_from(["2", "JAN-MAR", "oct"])))
    hour = draw(st.one_of(lists(0, 23), st.integers(0, 3).map(str), st.just("*")))
    fields = [draw(lists(0, 59)), hour, day, month, weekday]
    if seconds and draw(st.integers(0, 3)) == 0:
        fields.insert(0, draw(st.sampled_from(["0", "30", "*/20", "5,35"])))
    return " ".join(fields)


zones = st.sampled_from(ZONES)


@st.composite
def zoned_instants(draw: st.DrawFn, first: int = 1995, last: int = 2040) -> tuple[str, datetime]:
    zone = draw(zones)
    near = changes(zone, first, last)
    if draw(st.booleans()) and near:
        return zone, draw(st.sampled_from(near)) + timedelta(seconds=draw(st.integers(-100_000, 20_000)))
    span = (datetime(last, 1, 1, tzinfo=UTC) - datetime(first, 1, 1, tzinfo=UTC)).days * 86_400
    start = datetime(first, 1, 1, tzinfo=UTC) + timedelta(seconds=draw(st.integers(0, span)))
    return zone, start.replace(microsecond=draw(st.sampled_from([0, 0, 1, 999_999])))
