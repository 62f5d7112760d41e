"""Stories, first part: runs. Each action goes to the store and to the model, and both must answer the same."""

from collections.abc import Sequence
from typing import TypeVar

from msgspec.structs import replace

from rota.domain import lifecycle
from rota.domain.decision import Decision
from rota.domain.fan import child_id, gather_id, need_of
from rota.domain.guards import Guards
from rota.domain.run import NewRun, Run, State, after
from rota.domain.settlement import Finish, Settlement, Verdict
from rota.store import OFFERS, Backend, Claim, ClaimRequest, Plan, Renewal, RunQuery, Store
from storekit.comparison import drawing
from storekit.comparison.checking import Checks
from storekit.comparison.drawing import Dice
from storekit.model import admit, claim, holds, settle
from storekit.model.admit import Answer
from storekit.model.book import Book

T = TypeVar("T")


class RunStory(Checks):
    def __init__(self, backend: Backend, store: Store, tasks: Sequence[str]) -> None:
        self.backend = backend
        self.store = store
        self.tasks = tasks
        self.book = Book()
        self.ids: list[str] = []
        self.news: dict[str, NewRun] = {}
        self.step = "begin"
        self.made = 0
        self.crowded = ("", "")
        self.spans: dict[tuple[str, str | None], bool] = {}
        """Whether the runs of a step and a unique key share the key with other tasks."""
        self.seen = {}
        self.claims: dict[str, ClaimRequest] = {}
        """The last request of each worker; a repeated claim says nothing of hand-overs."""
        self.claimed = []
        self.sent: list[Settlement] = []
        self.finished: set[tuple[str, float]] = set()
        self.fans: list[str] = []

    async def now(self) -> float:
        return (await self.store.runs(RunQuery(ids=[]))).now

    # -- putting -------------------------------------------------------------------------------------------------------

    async def put(self, dice: Dice) -> None:
        news = await self.newcomers(dice, dice.randint(1, 4))
        news = [drawing.with_extras(dice, new, self.tasks) for new in news]
        self.news |= {new.id: new for new in news}
        plan = None
        if dice.rarely(6):
            keep = frozenset(key for key in drawing.UNIQUE_KEYS if dice.rarely(2))
            plan = Plan(dice.choice(drawing.GROUPS), keep)
        await self.admit(news, plan)

    async def newcomers(self, dice: Dice, count: int) -> list[NewRun]:
        """Return new runs. Some of them wait for other runs, perhaps for one of the same batch."""
        now, found = await self.now(), list[NewRun]()
        for _ in range(count):
            id = self.fresh_id()
            new = self.draw_run(dice, id, now)
            needs = drawing.new_needs(dice, self.tasks, self.ids) if dice.rarely(5) else ()
            others = [need for need in needs if need not in self.news or not _may_join(new, self.news[need])]
            self.ids.append(id)
            self.news[id] = replace(new, needs=tuple(others))
            found.append(self.news[id])
        return found

    def draw_run(self, dice: Dice, id: str, now: float) -> NewRun:
        """Return a run. Of a batch, stores may choose which runs of a task with `max_pending` get the last places, and
        whether a run that shares its key with other tasks is judged before or after a run of that key that does not: a
        step has one of each."""
        tasks = [task for task in self.tasks if (self.step, task) != self.crowded]
        new = drawing.new_run(dice, tasks, id, now)
        if new.task in drawing.MOST_PENDING:
            self.crowded = self.step, new.task
        spans = new.guards.unique_in is not None
        if new.unique_key and self.spans.setdefault((self.step, new.unique_key), spans) != spans:
            new = replace(new, guards=Guards(max_pending=new.guards.max_pending), unique_key=None)
        return new

    def fresh_id(self) -> str:
        """Return a new id made of the number of the step, so that it stays the same if an earlier step is left out."""
        self.made += 1
        return f"{self.step}-{self.made}"

    async def fan_out(self, dice: Dice) -> None:
        """Make a fan with its gather and its children, or say how many children an earlier one has."""
        if self.fans and dice.rarely(2):
            await self.put_fan(dice.choice(self.fans), dice.randint(0, 3), None)
            return
        now, fan, count = await self.now(), self.fresh_id(), dice.randint(1, 3)
        await self.put_fan(fan, count if dice.rarely(2) else None, dice.choice([None, 0, 1]))
        self.fans.append(fan)
        names = [gather_id(fan), *(child_id(fan, index) for index in range(count))]
        drawn = [replace(self.draw_run(dice, id, now), guards=Guards(), unique_key=None) for id in names]
        news = [replace(drawn[0], needs=(need_of(fan),)), *drawn[1:]]
        self.ids += names
        self.news |= {new.id: new for new in news}
        await self.admit(news)

    async def put_fan(self, fan: str, total: int | None, allowed: int | None) -> None:
        reply = await self.store.fan(fan, total, allowed)
        self.book.now = reply.now
        assert reply.items == [holds.put_fan(self.book, fan, total, allowed)]

    async def put_again(self, dice: Dice) -> None:
        """Put an id again that is known or was forgotten, with other options than before."""
        now = await self.now()
        news = [self.draw_run(dice, id, now) for id in sorted({*dice.some(self.ids)})]
        own = self.book.fingerprints
        news = [replace(new, fingerprint=own[new.id]) if new.id in own and dice.rarely(2) else new for new in news]
        news = [replace(new, fingerprint="0" * 32) if new.id in own and not new.fingerprint else new for new in news]
        self.news |= {new.id: new for new in news if new.id not in self.book.rows}
        await self.admit(news)

    async def admit(self, news: Sequence[NewRun], plan: Plan | None = None) -> None:
        reply = await self.store.put(news, plan)
        self.book.now = reply.now
        answers, gone = admit.put(self.book, news, plan)
        self.check_answers(reply.items[: len(news)], answers)
        assert {(decision.run, str(decision.reason)) for decision in reply.items[len(news) :]} == {
            (run, "cancelled") for run in gone
        }
        assert len(reply.items) == len(news) + len(gone)

    def check_answers(self, decisions: Sequence[Decision], answers: Sequence[Answer]) -> None:
        assert len(decisions) == len(answers)
        for decision, (run, reason) in zip(decisions, answers, strict=True):
            assert decision.reason == reason, f"{decision}, expected {reason}"
            if reason in (
                "already_running",
                "buffer_full",
            ):  # if several runs of the unique key run, the answer may name any of them
                names = [
                    (row.new.task, row.new.unique_key) for row in map(self.book.rows.get, (decision.run, run)) if row
                ]
                assert len(names) == 2
                assert names[0] == names[1]
            else:
                assert decision.run == run, f"{decision}, expected {run}"

    # -- claiming ------------------------------------------------------------------------------------------------------

    async def claim(self, dice: Dice) -> None:
        worker = dice.choice(drawing.WORKERS)
        tasks = dice.choice([self.tasks] * 4 + [self.tasks[:1], self.tasks[1:], ()])
        queues = dice.choice(drawing.SERVED)
        request = ClaimRequest(worker, 0, tasks, dice.randint(0, 4), dice.choice(drawing.LEASES), queues=queues)
        claim = await self.take(request, dice.rarely(2), self.draw_took(dice, worker))
        self.claimed.extend(claim.runs)

    def draw_took(self, dice: Dice, worker: str) -> str | None:
        """Return the run that the worker took of those handed over to it; None if it did not hear of it."""
        handed = self.book.handed.get(worker)
        return handed[0] if handed and dice.rarely(2) else None

    async def wait_for_work(self, dice: Dice) -> None:
        """All workers claim until nothing is due, and then a run is put."""
        for worker in [drawing.WORKERS[0], *drawing.WORKERS]:
            took = self.draw_took(dice, worker)
            request = ClaimRequest(worker, 0, self.tasks, 20, drawing.LEASES[0])
            self.claimed.extend((await self.take(request, True, took)).runs)
            await self.check_runs()
        await self.admit(await self.newcomers(dice, dice.randint(1, 2)))

    async def take(self, request: ClaimRequest, ready: bool = False, took: str | None = None) -> Claim:
        """Send `request` as the next claim of its worker."""
        worker = request.worker
        n = self.claims[worker].n + 1 if worker in self.claims else 1
        request = self.claims[worker] = replace(request, n=n)
        if (handing := self.store.hands_over) is not None:
            heard = ready and await handing.hears(worker)
            reply = await handing.claim_ready(request, f"{worker} {n}" if heard else None, took)
        else:
            reply = await self.store.claim(request)
        self.book.now = reply.now
        expected = claim.claim(self.book, request, ready, took, reply.ended)
        got, wanted = in_order(reply.runs, [run.id for run in reply.runs]), in_order(reply.runs, expected)
        assert got == wanted, f"the store gives {got}, the model {wanted}"
        self.check_policies(reply.runs)
        self.check_offers(reply, request)
        return reply

    async def claim_again(self, dice: Dice) -> None:
        for worker in dice.some(sorted(self.claims)):
            request = self.claims[worker]
            reply = await self.store.claim(request)
            self.book.now = reply.now
            claim.kept(self.book, worker, request.lease)
            claim.may_hand(self.book, request, ready=False)
            batch = [pair for pair in self.book.batches[worker] if self.book.leased(*pair, worker)]
            assert in_order(reply.runs, [(run.id, run.fence) for run in reply.runs]) == in_order(reply.runs, batch)
            self.check_offers(reply, request)

    async def claim_with_an_old_number(self, dice: Dice) -> None:
        for worker in dice.some(sorted(self.claims)):
            request = self.claims[worker]
            claim = await self.store.claim(replace(request, n=request.n - 1))
            assert all(self.book.leased(run.id, run.fence, run.worker) for run in claim.runs)
            self.check_offers(claim, request)

    def check_offers(self, claim: Claim, request: ClaimRequest) -> None:
        self.check_due(claim, bool(request.tasks or request.free))
        assert len(claim.lapsed) <= OFFERS
        for run in claim.lapsed:
            row = self.book.leased(run.id, run.fence, run.worker)
            assert row is not None, f"{run.id} was offered for rescue, but nobody holds it so"
            assert (row.until or 0.0) <= claim.now

    # -- settling ------------------------------------------------------------------------------------------------------

    async def renew(self, dice: Dice) -> None:
        runs, seconds = dice.some(self.claimed), dice.choice(drawing.LEASES)
        notes = {run.id: note for run in runs if (note := dice.choice(drawing.NOTES))}
        reply = await self.store.renew([run.lease for run in runs], seconds, notes)
        self.book.now = reply.now
        until = after(reply.now, seconds)
        expected = [settle.renew(self.book, run.lease, until, notes.get(run.id)) for run in runs]
        assert reply.items == [Renewal(answer) for answer in expected]

    def leased(self) -> list[Run]:
        return [run for run in self.seen.values() if run.state is State.RUNNING]

    async def settle(self, dice: Dice) -> None:
        """Settle runs by the workers that have them, under their current fences."""
        await self.send([self.judged(dice, run) for run in dice.some(self.leased())])

    async def settle_late(self, dice: Dice) -> None:
        """Settle by any worker that ever had a run, in time or too late, also as a rescuer."""
        await self.send([self.judged(dice, run) for run in dice.some(self.claimed)])

    def judged(self, dice: Dice, run: Run) -> Settlement:
        return lifecycle.settlement_of(run, dice.choice(drawing.OUTCOMES), note=dice.choice(drawing.NOTES))

    async def settle_again(self, dice: Dice) -> None:
        await self.send(dice.some(self.sent))

    async def rescue(self, dice: Dice) -> None:
        """Rescue as an engine does: settle the lapsed runs of a claim as lost."""
        claim = await self.take(ClaimRequest(dice.choice(drawing.WORKERS), 0, (), 0, drawing.LEASES[0]))
        await self.check_runs()
        await self.send([lifecycle.settlement_of(run, lifecycle.Lost()) for run in claim.lapsed])

    async def send(self, settlements: Sequence[Settlement]) -> None:
        reply = await self.store.settle(settlements)
        self.book.now = reply.now
        expected = [settle.settle(self.book, settlement) for settlement in settlements]
        assert reply.items == [Verdict(verdict) for verdict in expected], f"expected {expected}"
        self.sent.extend(settlements)
        for settlement, verdict in zip(settlements, expected, strict=True):
            if verdict == "applied" and isinstance(settlement.action, Finish):
                once = (settlement.run, self.seen[settlement.run].created_at)
                assert once not in self.finished, f"{settlement.run} was recorded finished twice"
                self.finished.add(once)

    # -- time ----------------------------------------------------------------------------------------------------------

    async def sweep(self, dice: Dice) -> None:
        retention = drawing.retention(dice)
        swept = await self.store.sweep(retention)
        self.book.now = swept.now
        late = [row for row in self.book.rows.values() if row.too_late(swept.now)]
        assert swept.expired == len(late)
        holds.expire(self.book, late)
        self.book.forget_turns()
        holds.forget_fans(self.book)
        left = {run.id for run in (await self.store.runs(RunQuery(limit=1000))).runs}
        gone = [id for id in self.book.rows if id not in left]
        assert swept.forgotten == len(gone)
        verdicts = {id: settle.may_forget(self.book, row, retention) for id, row in self.book.rows.items()}
        assert all(verdicts[id][0] for id in gone)
        assert not any(verdicts[id][1] for id in left)
        for id in gone:
            del self.book.rows[id], self.seen[id]

    async def pass_time(self, dice: Dice) -> None:
        self.backend.skew += dice.choice(drawing.STEPS)


def in_order(runs: Sequence[Run], items: Sequence[T]) -> Sequence[T]:
    """Return `items` for a comparison. Stores may choose in which order they answer runs that take turns."""
    return sorted(items) if any(run.share is not None for run in runs) else list(items)  # type: ignore[type-var]


def _may_join(new: NewRun, known: NewRun) -> bool:
    """Return whether one run could join the other. A run that waits for itself is left out."""
    return new.unique_key is not None and (new.task, new.unique_key) == (known.task, known.unique_key)
