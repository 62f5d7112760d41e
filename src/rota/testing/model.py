"""What a store does, in plain dictionaries: the rules a second time, on purpose, sharing no code with the stores."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from rota.domain.run import NewRun, Run, after
from rota.domain.settlement import Charge, Finish, Settlement
from rota.store import ID_MEMORY, Retention


@dataclass
class Row:
    """One run, as the model sees it; `endings` are (fence, outcome, by a rescuer?)."""

    new: NewRun
    order: int
    due: float
    expires: float | None
    state: str = "queued"
    fence: int = 0
    failures: int = 0
    losses: int = 0
    holder: str | None = None
    until: float | None = None
    wish: bool = False
    reason: str | None = None
    result: bytes | None = None
    finished: float | None = None
    endings: list[tuple[int, str, bool]] = field(default_factory=list[tuple[int, str, bool]])

    @property
    def final(self) -> bool:
        return self.state not in ("queued", "running")

    def too_late(self, now: float) -> bool:
        return self.state == "queued" and self.expires is not None and self.expires <= now

    def shown(self) -> dict[str, Any]:
        """What a store has to show of it."""
        return {
            "state": self.state,
            "task": self.new.task,
            "due_at": self.due,
            "expires_at": self.expires,
            "fence": self.fence,
            "failures": self.failures,
            "losses": self.losses,
            "worker": self.holder,
            "until": self.until,
            "cancel_asked": self.wish,
            "reason": self.reason,
            "result": self.result,
            "finished_at": self.finished,
            "attempts": [(fence, outcome) for fence, outcome, _ in self.endings][-20:],
        }


def show(run: Run) -> dict[str, Any]:
    seen = {name: getattr(run, name) for name in _EMPTY.shown()}
    return seen | {"attempts": [(attempt.fence, attempt.outcome) for attempt in run.attempts]}


_EMPTY = Row(NewRun(id="", task="", wire=b""), 0, 0.0, None)


class Model:
    """Every verb takes the time that the store has answered with."""

    def __init__(self) -> None:
        self.rows: dict[str, Row] = {}
        self.arrivals = 0
        self.batches: dict[str, tuple[int, list[tuple[str, int]]]] = {}

    def put(self, news: Sequence[NewRun], now: float) -> None:
        for new in news:
            if new.id in self.rows:
                continue
            self.arrivals += 1
            due = after(now, new.delay)
            expires = None if new.expires_after is None else after(due, new.expires_after)
            self.rows[new.id] = Row(new, self.arrivals, due, expires)

    def claim(self, worker: str, n: int, tasks: Sequence[str], free: int, lease: float, now: float) -> list[str]:
        ready = [
            row
            for row in self.rows.values()
            if row.state == "queued" and row.due <= now and row.new.task in tasks and not row.too_late(now)
        ]
        if any(row.state == "running" and row.holder == worker and row.losses for row in self.rows.values()):
            ready = [row for row in ready if not row.losses]  # one suspect at a time
        ready = sorted(ready, key=lambda row: (-row.new.priority, row.due, row.order))[:free]
        taken = ready[:1] if ready and ready[0].losses else [row for row in ready if not row.losses]
        for row in taken:
            row.state, row.holder, row.until = "running", worker, after(now, lease)
            row.fence += 1
        self.batches[worker] = n, [(row.new.id, row.fence) for row in taken]
        return [row.new.id for row in taken]

    def held(self, id: str, fence: int) -> Row | None:
        row = self.rows.get(id)
        return row if row and row.state == "running" and row.fence == fence else None

    def renew(self, id: str, fence: int, until: float) -> str:
        row = self.held(id, fence)
        if row is None:
            return "lost"
        row.until = until
        return "cancel" if row.wish else "ok"

    def settle(self, said: Settlement, now: float) -> str:
        row = self.held(said.run, said.fence)
        if row is None:
            known = self.rows.get(said.run)
            before = [(fence, lost) for fence, _, lost in known.endings[-20:]] if known else []
            return "already" if (said.fence, said.lost) in before else "stale"
        if said.lost and (row.until or 0.0) > now:
            return "stale"
        row.endings.append((said.fence, said.outcome, said.lost))
        row.holder = row.until = None
        row.failures += said.charge is Charge.FAILURE
        row.losses += said.charge is Charge.LOSS
        if isinstance(said.action, Finish):
            row.state, row.reason = said.action.state, said.action.reason
            row.result, row.finished = said.action.result, now
        elif row.wish:
            row.state, row.reason, row.finished = "cancelled", "cancelled", now
        else:
            row.state = "queued"
            row.due = after(now, said.action.delay) if said.action.delay else row.due
            row.expires = None if said.called else row.expires
        return "applied"

    def cancel(self, id: str, now: float) -> bool:
        row = self.rows.get(id)
        if row is None or row.final:
            return False
        if row.state == "running":
            row.wish = True
        else:
            row.state, row.reason, row.finished = "cancelled", "cancelled", now
        return True

    def expire(self, row: Row, now: float) -> None:
        row.state, row.reason, row.finished = "cancelled", "expired", now

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
