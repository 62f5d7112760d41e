"""Counts per task and minute, from the reports of workers."""

from collections.abc import Iterable

from msgspec.structs import replace

from rota.store import Stat, Tally

KEPT_MINUTES = 2 * 24 * 60


class Charts:
    def __init__(self) -> None:
        self._tallies: dict[tuple[int, str], Tally] = {}

    def add(self, minute: int, tallies: Iterable[Tally]) -> None:
        for tally in tallies:
            known = self._tallies.get((minute, tally.task))
            self._tallies[minute, tally.task] = merged(known, tally)

    def since(self, minute: int) -> list[Stat]:
        return [Stat(at, tally) for (at, _), tally in sorted(self._tallies.items()) if at >= minute]

    def forget(self, minute: int) -> None:
        self._tallies = {name: tally for name, tally in self._tallies.items() if name[0] > minute - KEPT_MINUTES}


def merged(known: Tally | None, new: Tally) -> Tally:
    if known is None:
        return new
    return replace(
        known,
        succeeded=known.succeeded + new.succeeded,
        failed=known.failed + new.failed,
        retried=known.retried + new.retried,
        other=known.other + new.other,
        waits=_added(known.waits, new.waits),
        durations=_added(known.durations, new.durations),
    )


def _added(one: dict[int, int], two: dict[int, int]) -> dict[int, int]:
    return {at: one.get(at, 0) + two.get(at, 0) for at in one.keys() | two.keys()}
