"""What a store does, in plain dictionaries: the rules a second time, on purpose, sharing no code with the stores."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from rota.domain.run import Lease, NewRun, Run, after
from rota.domain.schedule import Tick
from rota.domain.settlement import Charge, Finish, Settlement
from rota.store import ID_MEMORY, Retention
from rota.testing.model_schedules import Decisions, Timetable


@dataclass
class Row:
    """One run, as the model sees it; `endings` are (fence, worker, outcome, by a rescuer?), `needs` those it was put
    behind."""

    new: NewRun
    order: int
    created: float
    due: float
    expires: float | None
    wire: bytes
    state: str = "queued"
    fence: int = 0
    failures: int = 0
    losses: int = 0
    holder: str | None = None
    until: float | None = None
    wish: str | None = None
    reason: str | None = None
    result: bytes | None = None
    finished: float | None = None
    endings: list[tuple[int, str, str, bool]] = field(default_factory=list[tuple[int, str, str, bool]])
    needs: "list[Row]" = field(default_factory=list["Row"])
    awaited: bool = False

    @property
    def waits_for(self) -> tuple[str, ...]:
        """Those that have not ended; a run that has ended itself waits for nobody."""
        return () if self.final else tuple(row.new.id for row in self.needs if not row.final)

    @property
    def final(self) -> bool:
        return self.state not in ("queued", "running", "paused")

    def too_late(self, now: float) -> bool:
        return self.state == "queued" and self.expires is not None and self.expires <= now

    def end(self, state: str, reason: str | None, now: float) -> None:
        self.state, self.reason, self.finished = state, reason, now

    def shown(self) -> dict[str, Any]:
        """What a store has to show of it."""
        return {
            "state": self.state,
            "task": self.new.task,
            "wire": self.wire,
            "due_at": self.due,
            "expires_at": self.expires,
            "fence": self.fence,
            "failures": self.failures,
            "losses": self.losses,
            "worker": self.holder,
            "until": self.until,
            "cancel_asked": self.wish == "cancel",
            "pause_asked": self.wish == "pause",
            "reason": self.reason,
            "result": self.result,
            "finished_at": self.finished,
            "attempts": [(fence, outcome) for fence, _, outcome, _ in self.endings][-20:],
            "needs": self.waits_for,
            "awaited": self.awaited,
        }


def show(run: Run) -> dict[str, Any]:
    seen = {name: getattr(run, name) for name in _EMPTY.shown()}
    attempts = [(attempt.fence, attempt.outcome) for attempt in run.attempts]
    return seen | {"attempts": attempts, "needs": () if run.state.final else run.needs}


WORDS = {"cancel": "cancelled", "drop": "dropped", "pause": "paused", "resume": "resumed"}
_EMPTY = Row(NewRun(id="", task="", wire=b""), 0, 0.0, 0.0, None, b"")


class Model:
    """Every verb takes the time that the store has answered with. Parking is no part of it: it must not show."""

    def __init__(self, per_key: dict[str, int]) -> None:
        self.rows: dict[str, Row] = {}
        self.arrivals = 0
        self.batches: dict[str, tuple[int, list[tuple[str, int]]]] = {}
        self.ready: dict[str, Sequence[str]] = {}  # the tasks of workers that may be handed a run
        self.handed: dict[str, tuple[str, int]] = {}  # what they were, since their last claim
        self.per_key = per_key
        self.timetable = Timetable()
        self.decisions = Decisions()

    def put(self, new: NewRun, now: float) -> tuple[str, str]:
        """The run that stands for it, and the reason."""
        run, reason = self.admit(new, now)
        if reason != "accepted":
            self.decisions.add(new.task, new.key, reason, now, run=run)
        return run, reason

    def fire(self, tick: Tick, now: float) -> list[tuple[str, str]] | None:
        """What became of its runs; nothing if its schedule has moved on."""
        plan = self.timetable.stands(tick)
        if plan is None:
            return None
        answers = [self.put(run, now) for run in tick.runs]
        self.timetable.advance(plan, tick, [reason for _, reason in answers])
        if missed := tick.missed:
            place = plan.said["task"], plan.said["key"]
            self.decisions.add(*place, "missed", now, count=missed.count, note=missed.words)
        return answers

    def ask_schedule(self, wish: str, id: str, note: str | None, now: float) -> bool:
        plan = self.timetable.plans.get(id)
        changed = self.timetable.ask(wish, id, note, now)
        if plan is not None and changed:
            self.decisions.add(plan.said["task"], plan.said["key"], WORDS[wish], now, note=note)
        return changed

    def admit(self, new: NewRun, now: float) -> tuple[str, str]:
        if new.id in self.rows:
            return new.id, "accepted"
        due = after(now, new.delay) if new.at is None else new.at
        expires = None if new.expires_after is None else after(due, new.expires_after)
        equals = self.equals(new.task, new.unique_key, now)
        waiting = next((row for row in equals if row.state != "running"), None)
        if waiting is not None:
            return waiting.new.id, self.join(waiting, new, due, expires)
        if equals and new.guards.unique != "queued":
            return equals[0].new.id, "already_running"
        self.arrivals += 1
        needs = [row for id in new.needs if (row := self.rows.get(id)) and not row.final]
        self.rows[new.id] = Row(new, self.arrivals, now, due, expires, new.wire, needs=needs)
        for row in needs:
            row.awaited = True
        return new.id, "accepted"

    def equals(self, task: str, unique_key: str | None, now: float) -> list[Row]:
        """The unfinished runs of a unique key; those that are too late to start end here."""
        named = [row for row in self.rows.values() if (row.new.task, row.new.unique_key) == (task, unique_key)]
        for row in named if unique_key else ():
            if row.too_late(now):
                self.expire(row, now)
        return [row for row in named if unique_key and not row.final]

    def join(self, row: Row, new: NewRun, due: float, expires: float | None) -> str:
        if new.guards.join == "refuse":
            return "already_queued"
        if new.guards.join == "set":
            row.due = due
        elif new.guards.join == "push":
            longest = new.guards.max_wait
            row.due = max(row.due, due if longest is None else min(due, row.created + longest))
        row.wire = new.wire
        row.expires = row.expires if expires is None else expires
        return "joined"

    def hand(self, row: Row, worker: str, until: float, now: float) -> None:
        """A put leased this run to a worker: one that was ready, and has been handed nothing since."""
        assert row.new.task in self.ready.pop(worker)
        assert (row.state, row.losses, row.waits_for, row.fence) == ("queued", 0, (), 0)
        assert row.due <= now
        assert not row.too_late(now)
        assert row.new.task not in self.per_key
        row.state, row.holder, row.until, row.fence = "running", worker, until, 1
        self.handed[worker] = row.new.id, row.fence
        self.batches[worker] = self.batches[worker][0], [self.handed[worker]]

    def kept(self, worker: str, lease: float, now: float) -> Row | None:
        """What it was handed and still holds: from this claim on for a whole lease."""
        row = self.held(*self.handed.pop(worker), worker) if worker in self.handed else None
        if row is not None:
            row.until = after(now, lease)
        return row

    def claim(
        self,
        worker: str,
        n: int,
        tasks: Sequence[str],
        free: int,
        lease: float,
        now: float,
        ready: bool = False,
        took: str | None = None,
    ) -> list[str]:
        """One by one, the best first; a run with losses only as the first of them, and then alone. In front of them
        what it was handed and did not take.

        What is too late to start ends first, so that those who waited for it can come.
        """
        handed = self.kept(worker, lease, now)
        told = [] if handed is None or handed.new.id == took else [handed]
        free -= len(told)
        for row in self.rows.values():
            if row.too_late(now):
                self.expire(row, now)
        taken: list[Row] = []
        suspicious = any(row.state == "running" and row.holder == worker and row.losses for row in self.rows.values())
        coming = [
            row
            for row in self.rows.values()
            if row.state == "queued" and row.due <= now and row.new.task in tasks and not row.waits_for
        ]
        for row in sorted(coming, key=lambda row: (-row.new.priority, row.due, row.order)):
            if len(taken) >= free or (taken and taken[0].losses):
                break
            if (row.losses and (taken or suspicious)) or self.saturated(row):
                continue
            row.state, row.holder, row.until = "running", worker, after(now, lease)
            row.fence += 1
            taken.append(row)
        found = told + taken
        self.batches[worker] = n, [(row.new.id, row.fence) for row in found]
        self.may_hand(worker, tasks if ready and free > 0 and not found else ())
        return [row.new.id for row in found]

    def may_hand(self, worker: str, tasks: Sequence[str]) -> None:
        self.ready.pop(worker, None)
        if tasks:
            self.ready[worker] = tasks

    def saturated(self, row: Row) -> bool:
        place = row.new.task, row.new.key
        most = self.per_key.get(row.new.task)
        if most is None or row.new.key is None:
            return False
        running = [other for other in self.rows.values() if other.state == "running"]
        return sum((other.new.task, other.new.key) == place for other in running) >= most

    def held(self, id: str, fence: int, worker: str | None) -> Row | None:
        row = self.rows.get(id)
        return row if row and row.state == "running" and (row.fence, row.holder) == (fence, worker) else None

    def renew(self, lease: Lease, until: float) -> str:
        row = self.held(lease.run, lease.fence, lease.worker)
        if row is None:
            return "lost"
        row.until = until
        return row.wish or "ok"

    def settle(self, said: Settlement, now: float) -> str:
        row = self.held(said.run, said.fence, said.worker)
        if row is None:
            known = self.rows.get(said.run)
            before = [(fence, worker, lost) for fence, worker, _, lost in known.endings[-20:]] if known else []
            return "already" if (said.fence, said.worker, said.lost) in before else "stale"
        if said.lost and (row.until or 0.0) > now:
            return "stale"
        row.endings.append((said.fence, said.worker, said.outcome, said.lost))
        row.holder = row.until = None
        row.failures += said.charge is Charge.FAILURE
        row.losses += said.charge is Charge.LOSS
        if isinstance(said.action, Finish):
            row.end(said.action.state, said.action.reason, now)
            row.result = said.action.result
        elif row.wish == "cancel":
            row.end("cancelled", "cancelled", now)
        else:
            row.due = after(now, said.action.delay) if said.action.delay else row.due
            row.expires = None if said.called else row.expires
            self.requeue(row, now)
        return "applied"

    def requeue(self, row: Row, now: float) -> None:
        others = self.equals(row.new.task, row.new.unique_key, now)
        heir = next((other for other in others if other.state != "running"), None)
        row.state, row.wish = "paused" if row.wish == "pause" else "queued", None
        if heir is not None:
            heir.due, heir.failures = min(heir.due, row.due), max(heir.failures, row.failures)
            row.end("cancelled", "superseded", now)
            self.decisions.add(row.new.task, row.new.key, "superseded", now, run=heir.new.id)

    def cancel(self, id: str, now: float) -> bool:
        row = self.rows.get(id)
        if row is None or row.final:
            return False
        if row.wish != "cancel":
            self.asked(row, "cancelled", now)
        if row.state == "running":
            row.wish = "cancel"
        else:
            row.end("cancelled", "cancelled", now)
        return True

    def asked(self, row: Row, reason: str, now: float) -> None:
        self.decisions.add(row.new.task, row.new.key, reason, now, run=row.new.id)

    def pause(self, id: str, now: float) -> bool:
        row = self.rows.get(id)
        if row is None or row.final or row.state == "paused" or row.wish:
            return False
        self.asked(row, "paused", now)
        if row.state == "running":
            row.wish = "pause"
        else:
            row.state = "paused"
        return True

    def resume(self, id: str, now: float) -> bool:
        row = self.rows.get(id)
        if row is None or row.final or not (row.state == "paused" or row.wish == "pause"):
            return False
        self.asked(row, "resumed", now)
        row.state, row.wish = "queued" if row.state == "paused" else row.state, None
        return True

    def expire(self, row: Row, now: float) -> None:
        row.end("cancelled", "expired", now)
        self.decisions.add(row.new.task, row.new.key, "expired", now, run=row.new.id)

    def may_forget(self, row: Row, retention: Retention, now: float) -> tuple[bool, bool]:
        """May a sweep forget this run, and must it? They differ where several ended at one instant."""
        if row.finished is None or row.finished > now - ID_MEMORY:
            return False, False
        age = retention.succeeded if row.state == "succeeded" else retention.failed
        ended = [
            other.finished
            for other in self.rows.values()
            if other is not row and other.finished is not None and other.new.task == row.new.task
        ]
        newer = sum(finished > row.finished for finished in ended)
        as_new = sum(finished >= row.finished for finished in ended)
        old = row.finished <= now - age
        may = as_new >= retention.most or (old and as_new >= retention.least)
        must = newer >= retention.most or (old and newer >= retention.least)
        return may, must
