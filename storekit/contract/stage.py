"""The stage of the contract tests: an open store, runs and workers, each in one line."""

import itertools
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager

import pytest
import pytest_asyncio

from rota.domain import codec, lifecycle
from rota.domain.decision import Decision
from rota.domain.guards import Cooldown, Guards, Meeting, Unique
from rota.domain.policy import Limit, Policy, Rate, Retry
from rota.domain.run import DEFAULT_QUEUE, Failure, Member, NewRun, Origin, Run
from rota.domain.settlement import Settlement, Verdict
from rota.domain.spec import TaskSpec
from rota.store import (
    Backend,
    Claim,
    ClaimRequest,
    Command,
    Declared,
    Handed,
    Hint,
    Renewal,
    Report,
    RunQuery,
    Store,
)

GREET = "greet"
LEASE = 30.0
ARGS = b'{"name":"Ada"}'
BOOM = Failure("ValueError", "boom", "Traceback ...")
STUBBORN = Policy(retry=Retry(1000, backoff="fixed", delay=600, jitter=0), max_losses=1000)
"""A policy with so many retries that a run can be claimed many times."""

_ids = (f"run-{number}" for number in itertools.count(1))


def new_run(
    task: str = GREET,
    *,
    id: str | None = None,
    args: bytes = ARGS,
    policy: Policy = STUBBORN,
    key: str | None = None,
    priority: int = 0,
    delay: float = 0.0,
    at: float | None = None,
    expires_after: float | None = None,
    expires_at: float | None = None,
    unique: Unique | None = None,
    join: Meeting = "keep",
    max_wait: float | None = None,
    cooldowns: tuple[Cooldown, ...] = (),
    max_pending: int | None = None,
    needs: Sequence[str] = (),
    behind: bool = False,
    member: Member | None = None,
    headers: dict[str, str] | None = None,
    queue: str = DEFAULT_QUEUE,
    share: str | None = None,
) -> NewRun:
    return NewRun(
        id=id or next(_ids),
        task=task,
        body=codec.encode(args, Origin(), policy, member, headers),
        key=key,
        unique_key=(key or "only") if unique else None,
        guards=Guards(unique, join, max_wait, cooldowns, max_pending, behind),
        priority=priority,
        delay=delay,
        at=at,
        expires_after=expires_after,
        expires_at=expires_at,
        needs=tuple(needs),
        group=None if member is None else member.group,
        queue=queue,
        share=share,
    )


def token(worker: str, n: int) -> str:
    """Return the token that a worker gives with its claim `n` for hand-overs."""
    return f"{worker} {n}"


def ids(runs: Sequence[Run | NewRun]) -> list[str]:
    return [run.id for run in runs]


class Stage:
    """One open store. The stage numbers the claims of its workers."""

    def __init__(self, backend: Backend, store: Store) -> None:
        self.backend = backend
        self.store = store
        self.claims: dict[str, int] = {}

    def wait(self, seconds: float) -> None:
        self.backend.skew += seconds

    async def now(self) -> float:
        return (await self.store.runs(RunQuery(ids=[]))).now

    async def put(self, *runs: NewRun) -> None:
        reply = await self.store.put(runs)
        assert [decision.run for decision in reply.items] == ids(runs)
        assert all(reply.items)

    async def admit(self, new: NewRun) -> Decision:
        """Put one run, which the store may refuse, and return the answer."""
        (decision,) = (await self.store.put([new])).items
        return decision

    async def declare(
        self, limit: Limit | None = None, rate: Rate | None = None, task: str = GREET, enabled: bool = True
    ) -> bool:
        (answer,) = (await self.store.declare([TaskSpec(task, enabled, limit, rate)])).items
        return answer is not Declared.UNCHANGED

    async def claim(
        self,
        worker: str = "ada",
        free: int = 1,
        *,
        tasks: Sequence[str] = (GREET,),
        lease: float = LEASE,
        again: bool = False,
        report: Report | None = None,
        ready: bool = False,
        took: str | None = None,
        queues: Sequence[str] = (),
    ) -> Claim:
        """Make the next claim of a worker, or its last one `again`."""
        n = self.claims.get(worker, 0) + (not again)
        self.claims[worker] = n
        request = ClaimRequest(worker, n, tasks, free, lease, report, queues=queues)
        handing = self.store.hands_over
        if handing is not None and (ready or took):
            heard = ready and await handing.hears(worker)
            return await handing.claim_ready(request, token(worker, n) if heard else None, took)
        return await self.store.claim(request)

    async def take(self, worker: str = "ada") -> Run:
        """Claim, and return the one run that the worker gets."""
        (run,) = (await self.claim(worker)).runs
        return run

    async def running(self, new: NewRun | None = None, worker: str = "ada") -> Run:
        new = new or new_run()
        await self.put(new)
        run = await self.take(worker)
        assert run.id == new.id
        return run

    async def lapsed(self, new: NewRun | None = None) -> Run:
        """Return a run whose lease has lapsed."""
        run = await self.running(new)
        self.wait(LEASE + 1)
        return run

    async def ended(self, new: NewRun | None = None, outcome: lifecycle.Outcome | None = None) -> Run:
        run = await self.running(new)
        assert await self.end(run, outcome or lifecycle.Succeeded(b'"hello Ada"')) == Verdict.APPLIED
        return await self.see(run)

    async def end(self, run: Run, outcome: lifecycle.Outcome, seconds: float | None = None) -> Verdict:
        return await self.settle(lifecycle.settlement_of(run, outcome, seconds))

    async def settle(self, settlement: Settlement) -> Verdict:
        (verdict,) = (await self.store.settle([settlement])).items
        return verdict

    async def renew(self, run: Run, seconds: float = LEASE) -> Renewal:
        (answer,) = (await self.store.renew([run.lease], seconds)).items
        return answer

    async def cancel(self, run: Run | NewRun, note: str | None = None) -> bool:
        (answer,) = (await self.store.control(Command.CANCEL, [run.id], note)).items
        return bool(answer)

    async def pause(self, run: Run | NewRun, note: str | None = None) -> int:
        return (await self.store.control(Command.PAUSE, [run.id], note)).items[0]

    async def resume(self, run: Run | NewRun, note: str | None = None) -> int:
        return (await self.store.control(Command.RESUME, [run.id], note)).items[0]

    async def suspects(self, *news: NewRun) -> list[Run]:
        """Return queued runs with losses: their workers have died."""
        await self.put(*news)
        runs = (await self.claim("dead", free=len(news), tasks=sorted({new.task for new in news}))).runs
        assert len(runs) == len(news)
        self.wait(LEASE + 1)
        for run in runs:
            assert await self.end(run, lifecycle.Lost()) is Verdict.APPLIED
        return await self.find(*news)

    async def find(self, *runs: Run | NewRun) -> list[Run]:
        return (await self.store.runs(RunQuery(ids=ids(runs)))).runs

    async def see(self, run: Run | NewRun) -> Run:
        (found,) = await self.find(run)
        return found

    @asynccontextmanager
    async def listening(self) -> AsyncGenerator["Ear"]:
        last_word = new_run("of-no-worker")
        await self.put(last_word)
        async with self.store.changes() as hints:
            yield Ear(self, hints, last_word)


class Ear:
    """Hears all hints until the last one: the cancel of a run that serves as the end mark."""

    def __init__(self, stage: Stage, hints: AsyncIterator[Hint], last_word: NewRun) -> None:
        self._stage = stage
        self._hints = hints
        self._last_word = last_word
        self.carried: Handed | None = None
        """The hand-over of the first hint that had one."""

    async def all(self) -> Hint:
        await self._stage.cancel(self._last_word)
        workers, runs, resync = set[str](), set[str](), False
        async for hint in self._hints:
            workers |= hint.workers
            runs |= hint.runs
            resync |= hint.resync
            self.carried = self.carried or (hint if isinstance(hint, Handed) else None)
            if self._last_word.id in runs:
                break
        return Hint(frozenset(workers), frozenset(runs), resync)

    async def handed(self) -> Handed | None:
        """Return the hand-over of a hint, if there was one."""
        await self.all()
        return self.carried

    async def workers(self) -> frozenset[str]:
        return (await self.all()).workers

    async def runs(self) -> frozenset[str]:
        return (await self.all()).runs - {self._last_word.id}


@pytest.mark.asyncio
class Staged:
    """The base class of all parts of the contract."""

    @pytest.fixture
    def backend(self) -> Backend:
        raise NotImplementedError("give the contract a `backend` fixture: an empty store's backend")

    @pytest_asyncio.fixture
    async def stage(self, backend: Backend) -> AsyncIterator[Stage]:
        async with backend.open() as store:
            yield Stage(backend, store)
