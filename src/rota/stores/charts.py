"""Counts from the reports of workers: per task, origin and slot of time, and per task since the store was made."""

from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from rota.store import OTHER, SLOTS_KEPT, TOTAL, TOTAL_MEMORY, Stat, Tally, Total, What, added

SlotName = tuple[int, int, str, str]
"""The length of a slot (0: since the store was made), when the slot begins, a task and an origin."""


def places(minute: int, tally: Tally) -> Iterator[SlotName]:
    """Yield all places to which a tally of `minute` is added."""
    yield TOTAL, TOTAL, tally.task, ""
    for every in SLOTS_KEPT:
        yield every, minute // every * every, tally.task, tally.origin


class Charts:
    def __init__(self) -> None:
        self._tallies: dict[SlotName, Tally] = {}

    def add(self, minute: int, tallies: Iterable[Tally]) -> None:
        for tally in tallies:
            for place in places(minute, tally):
                self._tallies[place] = added(self._tallies.get(place), replace(tally, origin=place[3]))

    def stats(self, every: int, first: int) -> list[Stat]:
        """Return the slots of the length `every` from `first` on."""
        found = sorted(place for place in self._tallies if place[0] == every and place[1] >= first)
        return [Stat(place[1], self._tallies[place]) for place in found]

    def forget(self, minute: int) -> None:
        kept = {every: minute - most for every, most in SLOTS_KEPT.items()} | {TOTAL: -1}
        self._tallies = {place: tally for place, tally in self._tallies.items() if place[1] > kept[place[0]]}


class Totals:
    def __init__(self) -> None:
        self._totals: dict[tuple[str, str, str], Total] = {}
        self._reported_at: dict[tuple[str, str, str], float] = {}

    def add(self, total: Total, now: float) -> None:
        known = self._totals.get(total.id)
        self._totals[total.id] = total if known is None else known.plus(total.count)
        if (at := counted_at(total, now)) is not None:
            self._reported_at[total.id] = at

    def all(self) -> list[Total]:
        return sorted(self._totals.values())

    def forget(self, now: float) -> None:
        """Add what workers have not reported for long to OTHER."""
        for id in [id for id, at in self._reported_at.items() if at <= now - TOTAL_MEMORY]:
            del self._reported_at[id]
            self.add(replace(self._totals.pop(id), name=OTHER), now)


def counted_at(total: Total, now: float) -> float | None:
    """Return the `now` of a total that is forgotten if it does not change; None for a total that is kept."""
    return None if total.what == What.DECIDED or total.name in ("", OTHER) else now
