"""The schedules of the model, in plain dictionaries."""

from dataclasses import dataclass, field
from typing import Any

from rota.domain.run import after
from rota.domain.schedule import Schedule, Tick
from rota.store import OFFER_AGAIN

TIMES = ("trigger", "start", "end", "times")
STATE = ("anchor", "next_at", "fires_at", "version", "since", "paused", "note", "made", "recent")


@dataclass
class ScheduleRow:
    """One schedule: its fields by name, and when a claim offers it next."""

    fields: dict[str, Any]
    look_at: float | None = None

    def settle(self) -> None:
        self.look_at = None if self.fields["paused"] else self.fields["fires_at"]


def show_schedule(schedule: Schedule) -> dict[str, Any]:
    """Return the fields of a schedule that a store must show."""
    shown = {name: getattr(schedule, name) for name in schedule.__struct_fields__}
    return shown | {"recent": tuple((firing.nominal, firing.reason) for firing in schedule.recent)}


@dataclass
class Schedules:
    rows: dict[str, ScheduleRow] = field(default_factory=dict[str, ScheduleRow])

    def judged(self, schedule: Schedule, now: float = 0.0) -> tuple[str, dict[str, Any]]:
        """Return the answer to a declaration, and the fields that the schedule has then."""
        new, known = show_schedule(schedule), self.rows.get(schedule.id)
        if known is None:
            fresh = {"version": 1, "since": now, "paused": False, "note": None, "made": 0, "recent": ()}
            return "added", new | fresh
        if known.fields["owner"] != new["owner"]:
            return "taken", known.fields
        moved = any(known.fields[name] != new[name] for name in TIMES)
        kept = ("paused", "note", "recent") if moved else STATE
        fields = new | {name: known.fields[name] for name in kept}
        if not moved and fields == known.fields:
            return "unchanged", known.fields
        fields["version"] = known.fields["version"] + 1
        fields["since"] = now if moved else known.fields["since"]
        fields["made"] = 0 if moved else known.fields["made"]
        return "changed", fields

    def declare(self, schedule: Schedule, now: float) -> str:
        answer, fields = self.judged(schedule, now)
        if answer in ("added", "changed"):
            row = self.rows.setdefault(schedule.id, ScheduleRow(fields))
            row.fields = fields
            row.settle()
        return answer

    def current(self, tick: Tick) -> ScheduleRow | None:
        """Return the schedule of a tick, if it has not changed since the tick was computed."""
        row = self.rows.get(tick.schedule)
        if row is None or row.fields["paused"]:
            return None
        return row if (row.fields["version"], row.fields["next_at"]) == (tick.version, tick.next_at) else None

    def advance(self, row: ScheduleRow, tick: Tick, reasons: list[str]) -> None:
        missed = ((tick.missed.last, "missed"),) if tick.missed else ()
        recent = (*row.fields["recent"], *missed, *zip(tick.nominals, reasons, strict=True))
        row.fields = row.fields | {"next_at": tick.then, "fires_at": tick.fires_at, "recent": recent[-30:]}
        made = reasons.count("accepted")
        if tick.left is not None:
            row.fields["made"] += made
            if made >= tick.left:
                row.fields |= {"next_at": None, "fires_at": None}
        row.settle()

    def control(self, command: str, id: str, note: str | None, now: float) -> bool:
        row = self.rows.get(id)
        if row is None:
            return False
        if command in ("cancel", "drop"):
            del self.rows[id]
            return True
        if row.fields["paused"] == (command == "pause"):
            return False
        row.fields = row.fields | {"paused": command == "pause", "note": note, "version": row.fields["version"] + 1}
        if command == "resume":
            row.fields["since"] = now
        row.settle()
        return True

    def offer(self, now: float) -> set[str]:
        """Return the schedules that a claim offers now. Each is offered to one worker at a time."""
        due = {id for id, row in self.rows.items() if row.look_at is not None and row.look_at <= now}
        for id in due:
            self.rows[id].look_at = after(now, OFFER_AGAIN)
        return due
