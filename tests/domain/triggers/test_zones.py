"""Zones as stretches of constant offset."""

from datetime import UTC, datetime, timedelta, tzinfo

from rota.domain.triggers.zones import BLOCK, Stretch, Zone, find_zone

HOUR = 3600
NEW_BLOCK = 56 * BLOCK


class PutBack(tzinfo):
    """An hour ahead of UTC until `change`, then not."""

    def __init__(self, change: int) -> None:
        self._change = datetime(1970, 1, 1) + timedelta(seconds=change)

    def fromutc(self, dt: datetime) -> datetime:
        early = dt.replace(tzinfo=None) < self._change
        return (dt + (timedelta(hours=1) if early else timedelta())).replace(fold=not early)

    def utcoffset(self, dt: datetime | None) -> timedelta:
        return timedelta() if dt and dt.fold else timedelta(hours=1)

    def dst(self, dt: datetime | None) -> timedelta:
        return timedelta()

    def tzname(self, dt: datetime | None) -> str:
        return "put back"


def test_a_clock_put_back_is_two_stretches_and_the_second_knows_how_far_the_first_got() -> None:
    zone = find_zone("Europe/Paris")
    change = int(datetime(2026, 10, 25, 1, tzinfo=UTC).timestamp())
    before, after = zone.stretch(change - 1), zone.stretch(change)
    assert before.end == after.start == change
    assert (before.offset, after.offset) == (2 * HOUR, HOUR)
    assert after.reached == change + 2 * HOUR
    assert before.reached == int(datetime(2026, 3, 29, 2, tzinfo=UTC).timestamp())  # the gap began at 2:00


def test_a_clock_put_back_just_before_a_new_block_is_not_forgotten_in_it() -> None:
    zone = Zone(PutBack(NEW_BLOCK - 600))
    assert zone.stretch(NEW_BLOCK) == Stretch(NEW_BLOCK, NEW_BLOCK + BLOCK, 0, NEW_BLOCK - 600 + HOUR)
    assert zone.stretch(NEW_BLOCK - 1) == Stretch(NEW_BLOCK - 600, NEW_BLOCK, 0, NEW_BLOCK - 600 + HOUR)
    assert zone.stretch(NEW_BLOCK - 601).offset == HOUR


def test_stretches_join_without_a_hole() -> None:
    zone = find_zone("Africa/Casablanca")
    at = int(datetime(1970, 1, 1, tzinfo=UTC).timestamp())
    for _ in range(400):
        stretch = zone.stretch(at)
        assert stretch.start <= at < stretch.end
        assert zone.stretch(stretch.end).start == stretch.end
        at = stretch.end


def test_utc_is_one_stretch() -> None:
    assert find_zone(None) is find_zone("UTC")
    assert find_zone("UTC").stretch(0) is find_zone("UTC").stretch(10**10)
