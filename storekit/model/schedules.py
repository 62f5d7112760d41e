"""Schedules as the model sees them, in plain dictionaries."""

from dataclasses import dataclass, field
from typing import Any

from rota.domain.run import after
from rota.domain.schedule import Schedule, Tick
from rota.store import OFFER_AGAIN

TIMES = ("trigger", "start", "end")
STANDING = ("anchor", "next_at", "fires_at", "version", "since", "paused", "note", "recent")


@dataclass
class Plan:
    """One schedule: its fields by name, and when it is to be offered."""

    said: dict[str, Any]
    look_at: float | None = None

    def settle(self) -> None:
        self.look_at = None if self.said["paused"] else self.said["fires_at"]


def show_schedule(schedule: Schedule) -> dict[str, Any]:
    """What a store has to show of it."""
    shown = {name: getattr(schedule, name) for name in schedule.__struct_fields__}
    return shown | {"recent": tuple((firing.nominal, firing.reason) for firing in schedule.recent)}


@dataclass
class Timetable:
    plans: dict[str, Plan] = field(default_factory=dict[str, Plan])

    def declare(self, schedule: Schedule, now: float) -> str:
        new, known = show_schedule(schedule), self.plans.get(schedule.id)
        if known is None:
            fresh = {"version": 1, "since": now, "paused": False, "note": None, "recent": ()}
            self.plans[schedule.id] = plan = Plan(new | fresh)
            plan.settle()
            return "added"
        if known.said["owner"] != new["owner"]:
            return "taken"
        moved = any(known.said[name] != new[name] for name in TIMES)
        kept = ("paused", "note", "recent") if moved else STANDING
        said = new | {name: known.said[name] for name in kept}
        if not moved and said == known.said:
            return "unchanged"
        said["version"] = known.said["version"] + 1
        said["since"] = now if moved else known.said["since"]
        known.said = said
        known.settle()
        return "changed"

    def stands(self, tick: Tick) -> Plan | None:
        """The plan that this tick is a step of, if it is still where the tick was planned."""
        plan = self.plans.get(tick.schedule)
        if plan is None or plan.said["paused"]:
            return None
        return plan if (plan.said["version"], plan.said["next_at"]) == (tick.version, tick.next_at) else None

    def advance(self, plan: Plan, tick: Tick, reasons: list[str]) -> None:
        missed = ((tick.missed.last, "missed"),) if tick.missed else ()
        recent = (*plan.said["recent"], *missed, *zip(tick.nominals, reasons, strict=True))
        plan.said = plan.said | {"next_at": tick.then, "fires_at": tick.fires_at, "recent": recent[-30:]}
        plan.settle()

    def control(self, command: str, id: str, note: str | None, now: float) -> bool:
        plan = self.plans.get(id)
        if plan is None:
            return False
        if command in ("cancel", "drop"):
            del self.plans[id]
            return True
        if plan.said["paused"] == (command == "pause"):
            return False
        plan.said = plan.said | {"paused": command == "pause", "note": note, "version": plan.said["version"] + 1}
        if command == "resume":
            plan.said["since"] = now
        plan.settle()
        return True

    def offer(self, now: float) -> set[str]:
        """Who is offered at a claim now: each to one claimer at a time."""
        due = {id for id, plan in self.plans.items() if plan.look_at is not None and plan.look_at <= now}
        for id in due:
            self.plans[id].look_at = after(now, OFFER_AGAIN)
        return due
