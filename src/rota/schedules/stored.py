"""Stored schedules: read them, prepare what is declared over them, and move their next tick."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import datetime

from msgspec.structs import replace

from rota.client.client import Client
from rota.domain.intake import instant
from rota.domain.schedule import Schedule, Tick
from rota.domain.ticks import is_postponed, next_from, passed_tick, with_first_tick
from rota.errors import InvalidOptions, ScheduleChanged, ScheduleNotFound
from rota.store import Declared, Reply, RowQuery, Terms

SEEN = 10_000
"""Schedules that a process remembers for its status."""
TRIES = 20
"""How often a change that met another one is tried again."""


class StoredSchedules:
    """The schedules of one store, as those who change them need them."""

    def __init__(self, client: Callable[[], Client], tz: str) -> None:
        self._client = client
        self._tz = tz
        self.seen: dict[str, Schedule] = {}
        """The schedules as this process last read them. A status uses them, because it does not wait for the store."""

    async def set_next(self, id: str, at: datetime) -> Schedule:
        """Let the next tick be the first one of the trigger at or after `at`, by the store's clock. Ticks before it are
        left out; an `at` in the past brings the next tick back to the first one from now on."""
        return await self._move(id, instant(at, "at"), "schedules.set_next")

    async def _move(self, id: str, at: float, action: str, note: str | None = None) -> Schedule:
        """`action`: what an author does by it, for the audit."""
        for _ in range(TRIES):
            reply = await self._working(id)
            schedule = reply.items[0]
            try:
                tick = next_from(schedule, max(at, reply.now), note)
            except ValueError as error:
                raise InvalidOptions(f"schedule {id}: {error}") from None
            if tick is None:
                raise InvalidOptions(f"schedule {id}: '{schedule.trigger}' does not fire after that; delete it instead")
            same = tick.then == schedule.next_at and (note is None or note == (schedule.note or ""))
            if same or (await self._client().fire([tick], action)).items[0].applied:
                return (await self._read([id]))[0]
            if schedule.paused:
                raise InvalidOptions(f"schedule {id} is paused: resume it first")
        raise ScheduleChanged(f"schedule {id} changes all the time; try again")

    async def _is_postponed(self, id: str) -> bool:
        """Return whether somebody moved the next tick of a schedule beyond the next tick of its trigger. A schedule
        that is paused is not postponed."""
        reply = await self._found(id)
        return not reply.items[0].paused and is_postponed(reply.items[0], reply.now)

    async def _prepare(
        self, schedules: Sequence[Schedule], paused: bool = False
    ) -> tuple[Sequence[Schedule], Sequence[Tick]]:
        """Return the schedules with their first ticks by the store's clock, which alone decides what is past.

        If the times of a stored schedule change, its overdue ticks are not made up: they are returned as ticks that
        record them as missed. A new schedule is `paused` by giving it a version: a store takes a schedule with a
        version as it is.
        """
        reply = await self._rows([schedule.id for schedule in schedules])
        stored = {row.id: row for row in reply.items}
        prepared: list[Schedule] = []
        passed: list[Tick] = []
        for schedule in schedules:
            known = stored.get(schedule.id)
            try:
                first = with_first_tick(schedule, reply.now, known)
                pausing = paused and known is None and schedule.deadline is None
                prepared.append(replace(first, version=1, since=reply.now, paused=True) if pausing else first)
            except ValueError as error:
                raise InvalidOptions(f"schedule {schedule.id}: {error}") from None
            if known is not None and known.owner == schedule.owner and not prepared[-1].same_times(known):
                passed.extend(_passing(known, reply.now))
        return prepared, passed

    async def _declare(
        self, schedules: Sequence[Schedule], passed: Sequence[Tick], terms: Terms | None = None
    ) -> Sequence[Declared]:
        if passed:
            await self._client().fire(passed)
        return (await self._client().declare(schedules, terms)).items

    async def _rows(self, ids: Sequence[str]) -> Reply[Schedule]:
        return await self._client().rows(Schedule, RowQuery(names=ids, limit=max(1, len(ids))))

    async def _read(self, ids: Sequence[str]) -> Sequence[Schedule]:
        found = {row.id: row for row in (await self._rows(ids)).items}
        self._saw(found.values(), ids)
        return [found[id] for id in ids if id in found]

    async def _found(self, id: str) -> Reply[Schedule]:
        reply = await self._rows([id])
        if not reply.items:
            raise ScheduleNotFound(f"no schedule {id}; `rota schedules ls` shows those there are")
        return reply

    async def _working(self, id: str) -> Reply[Schedule]:
        """Return the schedule `id`, which must make runs."""
        reply = await self._found(id)
        check_working(reply.items[0])
        return reply

    def _saw(self, found: Iterable[Schedule], asked: Sequence[str]) -> None:
        """Remember the schedules `found`; forget those of `asked` that are not among them."""
        for id in asked:
            self.seen.pop(id, None)
        for schedule in found:
            if schedule.id in self.seen or len(self.seen) < SEEN:
                self.seen[schedule.id] = schedule


def check_working(schedule: Schedule) -> None:
    if schedule.deadline is not None:
        raise InvalidOptions(
            f"{schedule.id} is a deadline: it makes no runs, it looks whether {schedule.task} has succeeded"
        )


def _passing(known: Schedule, now: float) -> Iterator[Tick]:
    with suppress(ValueError):  # the trigger cannot be read by this version
        if (tick := passed_tick(known, now)) is not None:
            yield tick


def check_names(schedules: Sequence[Schedule]) -> None:
    names = Counter(schedule.id for schedule in schedules)
    if twice := [name for name, count in names.items() if count > 1]:
        raise InvalidOptions(f"schedule {twice[0]} is put twice at once; give each a name of its own")


def expected_version(id: str, if_absent: bool, if_version: int | None) -> int | None:
    """Return the version that a put wants; 0: there is no such schedule; None: any."""
    if if_version is None:
        return 0 if if_absent else None
    if if_absent:
        raise InvalidOptions(f"schedule {id}: if_absent says already that there is no version")
    if if_version < 1:
        raise InvalidOptions(f"schedule {id}: if_version={if_version}: versions begin with 1; or give if_absent")
    return if_version


def absent_only(terms: Terms) -> bool:
    """Return False for a put that leaves an existing schedule as it is. Raise ScheduleChanged for another version."""
    for id, version in terms.versions.items():
        if version:
            raise ScheduleChanged(f"schedule {id} no longer has version {version}; read it again, then put it")
    return False
