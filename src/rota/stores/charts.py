"""Counts per task and minute, from the reports of workers."""

from collections.abc import Iterable

from msgspec.structs import replace

from rota.store import ENDINGS, TOTAL, Stat, Tally

KEPT_MINUTES = 2 * 24 * 60


class Charts:
    def __init__(self) -> None:
        self._tallies: dict[tuple[int, str], Tally] = {}

    def add(self, minute: int, tallies: Iterable[Tally]) -> None:
        for tally in tallies:
            for at in (minute, TOTAL):
                known = self._tallies.get((at, tally.task))
                self._tallies[at, tally.task] = merged(known, tally)

    def since(self, minute: int) -> list[Stat]:
        return [Stat(at, tally) for (at, _), tally in sorted(self._tallies.items()) if at >= max(minute, TOTAL + 1)]

    def totals(self) -> list[Stat]:
        return [Stat(at, tally) for (at, _), tally in sorted(self._tallies.items()) if at == TOTAL]

    def forget(self, minute: int) -> None:
        kept = minute - KEPT_MINUTES
        self._tallies = {name: tally for name, tally in self._tallies.items() if name[0] > kept or name[0] == TOTAL}


def merged(known: Tally | None, new: Tally) -> Tally:
    if known is None:
        return new
    return replace(
        known,
        waits=_added(known.waits, new.waits),
        durations=_added(known.durations, new.durations),
        **{name: getattr(known, name) + getattr(new, name) for name in (*ENDINGS, "waited", "ran")},
    )


def _added(one: dict[int, int], two: dict[int, int]) -> dict[int, int]:
    return {at: one.get(at, 0) + two.get(at, 0) for at in one.keys() | two.keys()}
