"""What holds for every cron, zone and instant."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from rota.domain.triggers import Cron
from tests.domain.triggers.oracle import SECOND, fires
from tests.domain.triggers.strategies import crons, zoned_instants

few = settings(max_examples=60)
dsts = st.sampled_from(["vixie", "skip", "twice", "each"])
TICK = timedelta(microseconds=1)


def possible(expr: str, tz: str | None = None, dst: str = "vixie") -> Cron:
    try:
        return Cron(expr, tz, dst)
    except ValueError as error:
        assume("never comes" not in str(error))
        raise


@given(crons(), zoned_instants(), dsts)
@few
def test_fires_are_strictly_increasing_and_in_utc(expr: str, where: tuple[str, datetime], dst: str) -> None:
    zone, start = where
    found = [start, *possible(expr, zone, dst).upcoming(start, 8)]
    assert all(earlier < later for earlier, later in pairwise(found))
    assert all(fire.tzinfo is UTC and not fire.microsecond for fire in found[1:])


@given(crons(), zoned_instants(), dsts, st.data())
@few
def test_an_answer_does_not_depend_on_where_one_starts(
    expr: str, where: tuple[str, datetime], dst: str, data: st.DataObject
) -> None:
    zone, start = where
    cron = possible(expr, zone, dst)
    for earlier, later in pairwise(cron.upcoming(start, 4)):
        gap = later - earlier
        inside = earlier + min(gap - TICK, gap * data.draw(st.floats(0, 1)))
        local = inside.astimezone(ZoneInfo(zone))
        assert cron.next_after(inside) == cron.next_after(local) == later
        assert cron.previous_before(inside + TICK) == earlier
        assert cron.next_after(earlier - TICK) == earlier


@given(crons(), zoned_instants(), dsts)
@few
def test_previous_before_undoes_next_after(expr: str, where: tuple[str, datetime], dst: str) -> None:
    zone, start = where
    cron = possible(expr, zone, dst)
    found = cron.upcoming(start, 6)
    for earlier, later in pairwise(found):
        assert cron.previous_before(later) == earlier
    if found:
        before = cron.previous_before(found[0])
        assert before is None or (before <= start and cron.next_after(before) == found[0])


@given(crons(), zoned_instants(), dsts)
@settings(max_examples=80)
def test_fires_are_those_a_plain_search_finds(expr: str, where: tuple[str, datetime], dst: str) -> None:
    zone, start = where
    assume(not single_range_with_step(expr))
    cron = possible(expr, zone, dst)
    found = cron.upcoming(start, 5)
    assume(found and found[-1] - start < timedelta(days=60))
    assert fires(expr, ZoneInfo(zone), start, found[-1], dst) == found


@given(crons(), zoned_instants())
@few
def test_a_copy_from_its_text_fires_the_same(expr: str, where: tuple[str, datetime]) -> None:
    zone, start = where
    cron = possible(expr, zone)
    again = Cron.parse(str(cron))
    assert again == cron
    assert again.upcoming(start, 3) == cron.upcoming(start, 3)


@given(crons(), st.sampled_from(["Europe/Paris", "Pacific/Apia", None]))
@few
def test_the_ends_of_time_are_no_error(expr: str, zone: str | None) -> None:
    cron = possible(expr, zone)
    first, last = datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)
    for instant in (first, first + timedelta(days=2), last - timedelta(days=4), last - timedelta(days=1), last):
        later, earlier = cron.next_after(instant), cron.previous_before(instant)
        assert later is None or later > instant
        assert earlier is None or earlier < instant


def test_the_last_days_of_time_do_not_hold_the_search_up() -> None:
    start = datetime(9999, 12, 27, 23, 59, 59, tzinfo=UTC)
    for zone in (None, "Europe/Paris", "Pacific/Apia", "Pacific/Pago_Pago"):
        for day in (27, 28, 29, 30, 31):
            fire = Cron(f"0 0 {day} 12 *", zone, "twice").next_after(start)
            assert fire is None or fire > start


def single_range_with_step(expr: str) -> bool:
    """cronsim, whose readings the plain search uses, takes `7-7/2` for `7/2`."""
    items = (item for field in expr.split() for item in field.split(","))
    return any("/" in item and len(set(item.partition("/")[0].split("-"))) == 1 and "-" in item for item in items)


def test_29_february_on_a_given_weekday_is_found_across_2100() -> None:
    cron = Cron("0 0 29 2 */7")
    assert cron.upcoming(datetime(2077, 1, 1, tzinfo=UTC), 2) == [
        datetime(2088, 2, 29, tzinfo=UTC),
        datetime(2128, 2, 29, tzinfo=UTC),
    ]
    assert cron.previous_before(datetime(2128, 2, 29, tzinfo=UTC)) == datetime(2088, 2, 29, tzinfo=UTC)


def test_an_instant_inside_a_second_counts() -> None:
    cron = Cron("0 10 * * *")
    ten = datetime(2026, 1, 2, 10, tzinfo=UTC)
    assert cron.next_after(ten - TICK) == ten
    assert cron.next_after(ten) == ten + timedelta(days=1)
    assert cron.previous_before(ten + TICK) == ten
    assert cron.previous_before(ten + SECOND) == ten
    assert cron.previous_before(ten) == ten - timedelta(days=1)
