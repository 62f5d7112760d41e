"""The checks after every step of a story: the store shows what the model has."""

from collections.abc import Sequence
from typing import Any

from rota.domain import codec
from rota.domain.decision import DecisionCount
from rota.domain.fan import Fan
from rota.domain.overrides import Overrides, policy_under
from rota.domain.policy import Policy
from rota.domain.run import Run, State
from rota.domain.schedule import Schedule
from rota.domain.spec import TaskSpec
from rota.store import Claim, Freeze, MarkRow, RowQuery, RunQuery, Store, Total, What
from storekit.comparison.folding import Folded
from storekit.model import claim, holds
from storekit.model.book import ANY, ATTEMPTS_SHOWN, Book, Mark, Row
from storekit.model.schedules import show_schedule


def show(run: Run) -> dict[str, Any]:
    """Return the fields of a run that the model has too."""
    return {
        "state": str(run.state),
        "task": run.task,
        "key": run.key,
        "unique_key": run.unique_key,
        "priority": run.priority,
        "queue": run.queue,
        "share": run.share,
        "created_at": run.created_at,
        "touches": (run.touches, run.touched_at),
        "body": run.body,
        "due_at": run.due_at,
        "expires_at": run.expires_at,
        "fence": run.fence,
        "failures": run.failures,
        "losses": run.losses,
        "worker": run.worker,
        "until": run.until,
        "cancel_requested": run.cancel_requested,
        "pause_requested": run.pause_requested,
        "reason": run.reason,
        "note": run.note,
        "error": None if run.error is None else run.error.message,
        "result": run.result,
        "progress": run.progress,
        "saved": run.saved,
        "finished_at": run.finished_at,
        "attempts": [(attempt.fence, attempt.worker, attempt.outcome) for attempt in run.attempts],
        "needs": [] if run.state.final else sorted(run.needs),
        "awaited": run.awaited and not run.state.final,
    }


def show_row(row: Row) -> dict[str, Any]:
    return {
        "state": row.state,
        "task": row.new.task,
        "key": row.new.key,
        "unique_key": row.new.unique_key,
        "priority": row.priority,
        "queue": row.new.queue,
        "share": row.new.share,
        "created_at": row.created,
        "touches": (row.touches, row.created if row.touched is None else row.touched),
        "body": row.body,
        "due_at": row.due,
        "expires_at": row.expires,
        "fence": row.fence,
        "failures": row.failures,
        "losses": row.losses,
        "worker": row.holder,
        "until": row.until,
        "cancel_requested": row.command == "cancel",
        "pause_requested": row.command == "pause",
        "reason": row.reason,
        "note": row.note,
        "error": row.error,
        "result": row.result,
        "progress": row.progress,
        "saved": row.saved,
        "finished_at": row.finished,
        "attempts": [(one.fence, one.worker, one.outcome) for one in row.endings][-ATTEMPTS_SHOWN:],
        "needs": [] if row.final else sorted(row.needs),
        "awaited": row.awaited and not row.final,
    }


class Checks:
    """The checks of a story."""

    store: Store
    book: Book
    seen: dict[str, Run]
    claimed: list[Run]
    events: Folded | None = None
    """What the events make of the runs; None: nobody reads events in this story."""

    async def check_runs(self) -> None:
        page = await self.store.runs(RunQuery(limit=1000))
        if self.events is not None:
            await self.events.check(page.runs)
        self.notice_expiry([(run, self.book.rows[run.id]) for run in page.runs if run.id in self.book.rows], page.now)
        self.order_callbacks([run.id for run in page.runs])
        newest_first = sorted(self.book.rows.values(), key=lambda row: -row.order)
        assert [run.id for run in page.runs] == [row.id for row in newest_first]
        pairs = list(zip(page.runs, newest_first, strict=True))
        await self.clear_up()
        for run, row in pairs:
            if run.state is State.RUNNING and row.state == "queued":
                claim.hand(self.book, row, run.worker or "", run.until or 0.0, run.claimed_at or 0.0)
                self.claimed.append(run)
        for run, row in pairs:
            shown, known = show(run), show_row(row)
            assert shown == known, f"{run.id}: {differences(shown, known)}"
            self.check_history(run)
            self.seen[run.id] = run
        # A run that was tried may wait for its retry while one that was never tried waits for its end.
        unique = [row for row in newest_first if row.new.unique_key and row.waiting]
        waiting = [(row.new.task, row.new.unique_key, row.fence > 0) for row in unique]
        assert len(waiting) == len({*waiting}), f"two equal runs wait: {waiting}"

    def order_callbacks(self, newest_first: Sequence[str]) -> None:
        """Take over the order of the last arrivals, if callbacks are among them: a verb that ends several runs may put
        their callbacks in any order."""
        known = max((self.book.rows[id].order for id in self.seen if id in self.book.rows), default=0)
        fresh = [row for row in self.book.rows.values() if row.order > known]
        if any(row.called for row in fresh):
            places = sorted(row.order for row in fresh)
            shown = [id for id in reversed(newest_first) if id in self.book.rows and self.book.rows[id] in fresh]
            for id, place in zip(shown, places, strict=True):
                self.book.rows[id].order = place

    def notice_expiry(self, pairs: Sequence[tuple[Run, Row]], now: float) -> None:
        """Expire in the model the runs that the store shows as expired: a store may expire a run at any claim."""
        noticed = [(run, row) for run, row in pairs if row.too_late(now) and run.state is State.CANCELLED]
        for finished_at in sorted({run.finished_at or 0.0 for run, _ in noticed}):
            self.book.now = finished_at
            late = [row for run, row in noticed if run.finished_at == finished_at]
            assert all(row.too_late(finished_at) for row in late)
            holds.expire(self.book, late)

    async def clear_up(self) -> None:
        """Take over from the store what the model cannot know."""
        for about in self.book.unclear:
            reply = await self.store.rows(MarkRow, RowQuery(task=about[0], key=about[1]))
            mark = next((row.mark for row in reply.items if row.mark), None)
            known = self.book.marks.setdefault(about, Mark())
            if (known.succeeded, known.failures) == (None, 0):
                assert mark is None or mark.finished_at in (None, known.finished, self.book.now)
                known.finished = mark.finished_at if mark else None
        self.book.unclear.clear()

    def check_history(self, run: Run) -> None:
        """Check what must be true between any two views of one run."""
        assert (run.state is State.RUNNING) == (run.worker is not None) == (run.until is not None)
        assert run.state.final == (run.finished_at is not None)
        before = self.seen.get(run.id)
        if before is None or before.created_at != run.created_at:
            return
        if before.state.final:
            assert run == before, f"{run.id} was final, and changed"
        assert run.fence - before.fence == (run.claimed_at != before.claimed_at and run.worker is not None)

    async def check_others(self) -> None:
        """Check schedules, marks, decisions and counts."""
        shown = {row.id: show_schedule(row) for row in (await self.store.rows(Schedule)).items}
        agree("schedules", shown, {id: row.fields for id, row in self.book.schedules.rows.items()})
        marks = {(row.task, row.key): row.mark for row in (await self.store.rows(MarkRow)).items if row.mark}
        stored = {about: (mark.succeeded_at, mark.finished_at, mark.failures) for about, mark in marks.items()}
        known = {about: (mark.succeeded, mark.finished, mark.failures) for about, mark in self.book.marks.items()}
        nothing = (None, None, 0)
        agree("marks", without(stored, nothing), without(known, nothing))
        fans = {row.id: (row.total, row.allowed, row.ended, row.failed) for row in (await self.store.rows(Fan)).items}
        agree("fans", fans, {id: (fan.total, fan.allowed, fan.ended, fan.failed) for id, fan in self.book.fans.items()})
        await self.check_decisions()
        await self.check_freeze()
        await self.check_overrides()
        depths = {(row.task, row.queued, row.running, row.paused) for row in (await self.store.depths()).items}
        assert {row for row in depths if any(row[1:])} == self.counted()

    async def check_freeze(self) -> None:
        reply = await self.store.rows(Freeze)
        known = self.book.frozen(reply.now)
        assert [(row.until, row.note) for row in reply.items] == ([(known.until, known.note)] if known else [])

    async def check_decisions(self) -> None:
        decided = (await self.store.rows(DecisionCount, RowQuery(limit=1000))).items
        assert [row.last_at for row in decided] == sorted((row.last_at for row in decided), reverse=True)
        known = self.book.decisions.rows
        rows = {(row.task, row.key, str(row.reason)): row for row in decided}
        assert rows.keys() == known.keys()
        for name, row in rows.items():
            run = ANY if known[name][3] == ANY else row.run
            assert [row.count, row.first_at, row.last_at, run, row.note] == known[name], name
        totals = [total for total in (await self.store.rows(Total)).items if total.what == What.DECIDED]
        assert {(total.name, total.reason): total.count for total in totals} == self.book.decisions.totals

    def counted(self) -> set[tuple[str, int, int, int]]:
        rows = self.book.rows.values()
        found: set[tuple[str, int, int, int]] = set()
        for task in {row.new.task for row in rows if not row.final}:
            states = [row.state for row in rows if row.new.task == task]
            found.add((task, states.count("queued"), states.count("running"), states.count("paused")))
        return found

    def check_policies(self, runs: Sequence[Run]) -> None:
        """Check that claimed runs are called as the operator says, else as their submit said."""
        for run in runs:
            own = codec.decode(self.book.rows[run.id].body).policy or Policy()
            given = self.book.overrides.get(run.task) or Overrides()
            assert run.policy == policy_under(given, own), run

    async def check_overrides(self) -> None:
        specs = (await self.store.rows(TaskSpec)).items
        shown = {spec.name: spec.overrides for spec in specs if spec.overrides is not None}
        agree("overrides", shown, self.book.overrides)

    def check_due(self, claim: Claim, offered: bool) -> None:
        expected = self.book.schedules.offer(claim.now) if offered else set[str]()
        assert sorted(schedule.id for schedule in claim.schedules) == sorted(expected)
        rows = self.book.schedules.rows
        assert all(show_schedule(schedule) == rows[schedule.id].fields for schedule in claim.schedules)


def agree(what: str, shown: dict[Any, Any], known: dict[Any, Any]) -> None:
    assert shown == known, f"{what}: {differences(shown, known)}"


def differences(shown: dict[Any, Any], known: dict[Any, Any]) -> str:
    names = [name for name in {**shown, **known} if shown.get(name) != known.get(name)]
    return ", ".join(f"{name} is {shown.get(name)!r} in the store, {known.get(name)!r} in the model" for name in names)


def without(rows: dict[tuple[str, str], Any], value: object) -> dict[tuple[str, str], Any]:
    return {name: row for name, row in rows.items() if row != value}
