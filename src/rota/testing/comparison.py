"""A store beside the model: random operations, the same answers, and the same runs after every step.

TestMyStore = compare(MyBackend).TestCase
"""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from contextlib import AsyncExitStack
from typing import Any, TypeVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from msgspec.structs import replace

from rota.domain import lifecycle, wire
from rota.domain.decision import Decision, Reason
from rota.domain.guards import Guards
from rota.domain.policy import Limit, Policy, Retry
from rota.domain.run import Failure, NewRun, Origin, Run, State, after
from rota.domain.settlement import Finish, Settlement, Verdict
from rota.domain.spec import TaskSpec
from rota.store import OFFERS, Backend, Claim, Renewal, Retention, RunQuery, Store, Wish
from rota.testing.comparison_schedules import ScheduleOperations
from rota.testing.model import Model, show

T = TypeVar("T")

TASKS = ("a", "b", "limited")
LIMITS = {"limited": 2}
WORKERS = ("ada", "bob", "cyd")
LEASES = (10.0, 30.0)
POLICIES = (
    Policy(retry=Retry(2, backoff="fixed", delay=7, jitter=0), max_losses=3),
    Policy(lost="fail"),
)
INNOCENT = Policy(retry=Retry(2, backoff="fixed", delay=7, jitter=0), lost="fail")
"""Of a limited task: nobody can say which of a key's runs a worker gets that may not have the first one."""
OUTCOMES: tuple[lifecycle.Outcome, ...] = (
    lifecycle.Succeeded(b"1"),
    lifecycle.Failed(Failure("ValueError", "boom")),
    lifecycle.TimedOut(Failure("TimeoutError", "slow")),
    lifecycle.BadResult(Failure("TypeError", "odd")),
    lifecycle.Unbindable(Failure("TypeError", "old")),
    lifecycle.Cancelled(),
    lifecycle.Interrupted(),
    lifecycle.Released(),
    lifecycle.Snoozed(9),
    lifecycle.Paused(),
    lifecycle.Lost(),
)

guards = st.sampled_from(
    [
        Guards(),
        Guards(),
        Guards("queued"),
        Guards("queued", "push"),
        Guards("queued", "push", max_wait=8),
        Guards("queued", "set"),
        Guards("queued", "refuse"),
        Guards("active", "set"),
    ]
)


@st.composite
def new_runs(draw: st.DrawFn) -> NewRun:
    task, guard = draw(st.sampled_from(TASKS)), draw(guards)
    policy = INNOCENT if task in LIMITS else draw(st.sampled_from(POLICIES))
    args = draw(st.sampled_from([b"1", b"2"]))
    return NewRun(
        id="",
        task=task,
        wire=wire.encode(args, Origin(), policy),
        key=draw(st.sampled_from([None, "k", "k", "l"])),
        unique_key=draw(st.sampled_from(["u", "v"])) if guard.unique else None,
        guards=guard,
        priority=draw(st.integers(-1, 1)),
        delay=draw(st.sampled_from([0.0, 0.0, 0.0, 0.0, 5.0, 50.0])),
        expires_after=draw(st.sampled_from([None, None, None, None, 0.0, 20.0])),
    )


retentions = st.builds(
    Retention,
    succeeded=st.sampled_from([0.0, 100.0]),
    failed=st.sampled_from([0.0, 200.0]),
    most=st.integers(0, 4),
    least=st.integers(0, 4),
)


outcomes = st.sampled_from(OUTCOMES)
batches = st.lists(new_runs(), min_size=1, max_size=4)

WEIGHTS = {
    "put": 3,
    "put_again": 1,
    "claim": 4,
    "wait_for_work": 2,
    "claim_again": 1,
    "claim_with_an_old_number": 1,
    "renew": 2,
    "settle": 3,
    "settle_late": 3,
    "settle_again": 1,
    "rescue": 3,
    "cancel": 1,
    "pause": 1,
    "resume": 2,
    "declare_schedules": 1,
    "fire": 3,
    "fire_again": 1,
    "ask_schedules": 1,
    "sweep": 1,
    "pass_time": 3,
}
OPERATIONS = [name for name, weight in WEIGHTS.items() for _ in range(weight)]


def some_of(things: Sequence[T]) -> st.SearchStrategy[list[T]]:
    """Up to three of the latest eight, one of them perhaps twice."""
    recent = list(things[-8:])
    return st.lists(st.sampled_from(recent), min_size=1, max_size=3) if recent else st.just([])


class Comparison(ScheduleOperations, RuleBasedStateMachine):
    """Whatever happens to the store happens to the model."""

    @classmethod
    def make(cls) -> Backend:
        """A new and empty store's backend."""
        raise NotImplementedError

    def __init__(self) -> None:
        super().__init__()
        self.model = Model(LIMITS)
        self.ticks = []
        self.ids: list[str] = []
        self.seen: dict[str, Run] = {}
        self.claims: dict[str, tuple[int, Sequence[str], int, float]] = {}
        self.claimed: list[Run] = []
        self.sent: list[Settlement] = []
        self.finished: set[tuple[str, float]] = set()
        self.runner = asyncio.Runner()
        self.opened = AsyncExitStack()

    @initialize(news=batches)
    def open(self, news: list[NewRun]) -> None:
        self.backend = self.make()
        self.store: Store = self.wait(self.opened.enter_async_context(self.backend.open()))
        self.wait(self.opened.enter_async_context(self.store.changes()))  # so that a store may hand runs over
        specs = [TaskSpec(task, limit=Limit(per_key=most)) for task, most in LIMITS.items()]
        self.wait(self.store.declare(specs))
        self.admit([replace(new, id=self.fresh_id()) for new in news])

    def fresh_id(self) -> str:
        self.ids.append(f"r{len(self.ids)}")
        return self.ids[-1]

    def wait(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return self.runner.run(coroutine)

    def teardown(self) -> None:
        """Close what was opened, also where a step failed: the tests that follow use the same servers."""
        with self.runner:
            self.wait(self.opened.aclose())
        super().teardown()

    @rule(data=st.data(), operation=st.sampled_from(OPERATIONS))
    def operate(self, data: st.DataObject, operation: str) -> None:
        """One rule for all: hypothesis leaves most rules out of most examples, and such stories are dull."""
        getattr(self, operation)(data)

    def put(self, data: st.DataObject) -> None:
        self.admit(self.newcomers(data, data.draw(batches)))

    def newcomers(self, data: st.DataObject, news: list[NewRun]) -> list[NewRun]:
        """Each with a new id; some of them wait for others, perhaps for one that comes with them."""
        found: list[NewRun] = []
        for new in news:
            needs = data.draw(some_of(self.ids)) if data.draw(st.integers(0, 2)) == 0 else []
            found.append(replace(new, id=self.fresh_id(), needs=tuple(needs)))
        return found

    def draw_runs(self, data: st.DataObject, most: int) -> list[NewRun]:
        return self.newcomers(data, data.draw(st.lists(new_runs(), max_size=most)))

    def put_again(self, data: st.DataObject) -> None:
        """An id that is known, or was and is forgotten; with other wishes than before."""
        news = [replace(new, id=data.draw(st.sampled_from(self.ids))) for new in data.draw(batches)]
        self.admit([replace(new, needs=tuple(data.draw(some_of(self.ids)))) for new in news])

    def admit(self, news: list[NewRun]) -> None:
        reply = self.wait(self.store.put(news))
        answers = [self.model.put(new, reply.now) for new in news]
        assert reply.items == [Decision(run, Reason(reason)) for run, reason in answers]

    def claim(self, data: st.DataObject) -> None:
        worker = data.draw(st.sampled_from(WORKERS), label="worker")
        tasks = data.draw(st.sampled_from([TASKS, TASKS, TASKS, TASKS[:1], TASKS[2:], ()]), label="tasks")
        free, lease = data.draw(st.integers(0, 4), label="free"), data.draw(st.sampled_from(LEASES), label="lease")
        self.claimed.extend(self.take(worker, tasks, free, lease, *self.draw_hand(data, worker)).runs)

    def draw_hand(self, data: st.DataObject, worker: str) -> tuple[bool, str | None]:
        """Whether it is ready, and what it took of what it was handed: it may not have heard of it."""
        handed = self.model.handed.get(worker)
        return data.draw(st.booleans(), label="ready"), handed[0] if handed and data.draw(st.booleans()) else None

    def wait_for_work(self, data: st.DataObject) -> None:
        """All workers take what they find until there is nothing, and then something comes."""
        for worker in [WORKERS[0], *WORKERS]:
            _, took = self.draw_hand(data, worker)
            self.claimed.extend(self.take(worker, TASKS, 20, LEASES[0], True, took).runs)
            self.the_store_shows_what_the_model_knows()
        self.admit(self.newcomers(data, data.draw(st.lists(new_runs(), min_size=1, max_size=2))))

    def take(
        self, worker: str, tasks: Sequence[str], free: int, lease: float, ready: bool = False, took: str | None = None
    ) -> Claim:
        n = self.claims[worker][0] + 1 if worker in self.claims else 1
        self.claims[worker] = n, tasks, free, lease
        token = f"{worker} {n}" if ready else None
        claim = self.wait(self.store.claim(worker, n, tasks, free, lease, None, token, took))
        expected = self.model.claim(worker, n, tasks, free, lease, claim.now, ready, took)
        assert [run.id for run in claim.runs] == expected, f"expected {expected}"
        self.check_offers(claim, self.claims[worker])
        return claim

    def claim_again(self, data: st.DataObject) -> None:
        for worker in data.draw(some_of(sorted(self.claims))):
            claim = self.wait(self.store.claim(worker, *self.claims[worker]))
            self.model.kept(worker, self.claims[worker][3], claim.now)
            self.model.may_hand(worker, ())
            batch = [pair for pair in self.model.batches[worker][1] if self.model.held(*pair, worker)]
            assert [(run.id, run.fence) for run in claim.runs] == batch
            self.check_offers(claim, self.claims[worker])

    def claim_with_an_old_number(self, data: st.DataObject) -> None:
        for worker in data.draw(some_of(sorted(self.claims))):
            n, tasks, free, lease = self.claims[worker]
            claim = self.wait(self.store.claim(worker, n - 1, tasks, free, lease))
            assert all(self.model.held(run.id, run.fence, run.worker) for run in claim.runs)
            self.check_offers(claim, self.claims[worker])

    def check_offers(self, claim: Claim, sent: tuple[int, Sequence[str], int, float]) -> None:
        _, tasks, free, _ = sent
        self.check_due(claim, bool(tasks or free))
        assert len(claim.lapsed) <= OFFERS
        for run in claim.lapsed:
            row = self.model.held(run.id, run.fence, run.worker)
            assert row is not None
            assert (row.until or 0.0) <= claim.now

    def renew(self, data: st.DataObject) -> None:
        runs, seconds = data.draw(some_of(self.claimed)), data.draw(st.sampled_from(LEASES))
        reply = self.wait(self.store.renew([run.lease for run in runs], seconds))
        expected = [self.model.renew(run.lease, after(reply.now, seconds)) for run in runs]
        assert reply.items == [Renewal(answer) for answer in expected]

    def held(self) -> list[Run]:
        return [run for run in self.seen.values() if run.state is State.RUNNING]

    def settle(self, data: st.DataObject) -> None:
        """By those who hold the runs, each as it stands now."""
        self.send([lifecycle.decide(run, data.draw(outcomes)) for run in data.draw(some_of(self.held()))])

    def settle_late(self, data: st.DataObject) -> None:
        """By anyone who ever held a run: holders, zombies and rescuers, at the right time or not."""
        self.send([lifecycle.decide(run, data.draw(outcomes)) for run in data.draw(some_of(self.claimed))])

    def settle_again(self, data: st.DataObject) -> None:
        self.send(data.draw(some_of(self.sent)))

    def rescue(self, data: st.DataObject) -> None:
        """As an engine does it: judge what a claim offers, and send it."""
        claim = self.take(data.draw(st.sampled_from(WORKERS)), (), 0, LEASES[0])
        self.the_store_shows_what_the_model_knows()
        self.send([lifecycle.decide(run, lifecycle.Lost()) for run in claim.lapsed])

    def send(self, settlements: list[Settlement]) -> None:
        reply = self.wait(self.store.settle(settlements))
        expected = [self.model.settle(said, reply.now) for said in settlements]
        assert reply.items == [Verdict(verdict) for verdict in expected]
        self.sent.extend(settlements)
        for said, verdict in zip(settlements, expected, strict=True):
            if verdict == "applied" and isinstance(said.action, Finish):
                once = (said.run, self.seen[said.run].created_at)
                assert once not in self.finished, "recorded finished twice"
                self.finished.add(once)

    def cancel(self, data: st.DataObject) -> None:
        ids = sorted({*data.draw(some_of([*self.ids, *(run.id for run in self.held())]))})
        reply = self.wait(self.store.ask(Wish.CANCEL, ids))
        assert reply.items == [self.model.cancel(id, reply.now) for id in ids]

    def pause(self, data: st.DataObject) -> None:
        ids = sorted({*data.draw(some_of([*self.ids, *(run.id for run in self.held())]))})
        reply = self.wait(self.store.ask(Wish.PAUSE, ids))
        assert reply.items == [self.model.pause(id, reply.now) for id in ids]

    def resume(self, data: st.DataObject) -> None:
        held = [run.id for run in self.seen.values() if run.state is State.PAUSED or run.pause_asked]
        ids = sorted({*data.draw(some_of([*self.ids, *held]))})
        reply = self.wait(self.store.ask(Wish.RESUME, ids))
        assert reply.items == [self.model.resume(id, reply.now) for id in ids]

    def sweep(self, data: st.DataObject) -> None:
        retention = data.draw(retentions)
        swept = self.wait(self.store.sweep(retention))
        late = [row for row in self.model.rows.values() if row.too_late(swept.now)]
        assert swept.expired == len(late)
        for row in late:
            self.model.expire(row, swept.now)
        left = {run.id for run in self.all_runs()}
        gone = [id for id in self.model.rows if id not in left]
        assert swept.forgotten == len(gone)
        verdicts = {id: self.model.may_forget(row, retention, swept.now) for id, row in self.model.rows.items()}
        assert all(verdicts[id][0] for id in gone)
        assert not any(verdicts[id][1] for id in left)
        for id in gone:
            del self.model.rows[id], self.seen[id]

    def pass_time(self, data: st.DataObject) -> None:
        self.backend.skew += data.draw(st.sampled_from([1.0, 6.0, 11.0, 31.0, 61.0, 150.0]))

    def all_runs(self) -> list[Run]:
        return self.wait(self.store.runs(RunQuery(limit=1000))).runs

    @invariant()
    def the_store_shows_what_the_model_knows(self) -> None:
        page = self.wait(self.store.runs(RunQuery(limit=1000)))
        newest_first = sorted(self.model.rows.values(), key=lambda row: -row.order)
        assert [run.id for run in page.runs] == [row.new.id for row in newest_first]
        for run, row in zip(page.runs, newest_first, strict=True):
            if row.too_late(page.now) and run.state is State.CANCELLED:  # a store may notice it at any claim
                assert row.expires is not None
                assert run.finished_at is not None
                assert row.expires <= run.finished_at <= page.now
                self.model.expire(row, run.finished_at)
        for run, row in zip(page.runs, newest_first, strict=True):
            if run.state is State.RUNNING and row.state == "queued":
                self.model.hand(row, run.worker or "", run.until or 0.0, run.claimed_at or 0.0)
                self.claimed.append(run)
        for run, row in zip(page.runs, newest_first, strict=True):  # now that it is known who waits for nobody
            assert show(run) == row.shown()
            self.check_history(run)
            self.seen[run.id] = run
        self.check_timetable()

    def check_history(self, run: Run) -> None:
        """What holds between any two looks at one run."""
        assert (run.state is State.RUNNING) == (run.worker is not None) == (run.until is not None)
        assert run.state.final == (run.finished_at is not None)
        before = self.seen.get(run.id)
        if before is None:
            return
        if before.state.final:
            assert run == before
        assert run.fence - before.fence == (run.claimed_at != before.claimed_at and run.worker is not None)
        assert run.failures >= before.failures
        assert run.losses >= before.losses


def compare(make: Callable[[], Backend]) -> type[Comparison]:
    """The state machine for the backends that `make` makes, each of them empty."""
    return type("Comparison", (Comparison,), {"make": staticmethod(make)})
