"""try_put: says what a put would answer, and changes nothing."""

from collections.abc import Awaitable, Callable

import pytest
from msgspec.structs import replace

from rota.domain.decision import Decision, DecisionCount, Reason
from rota.domain.guards import Cooldown, Meeting, Unique
from rota.domain.lifecycle import Failed, Succeeded
from rota.domain.policy import Policy
from rota.domain.run import NewRun, Run
from rota.domain.spec import TaskSpec
from rota.store import MarkRow, RunQuery
from storekit.contract.stage import BOOM, GREET, Stage, Staged, new_run

Scene = Callable[[Stage], Awaitable[object]]


def equal(
    unique: Unique = "queued", join: Meeting = "keep", delay: float = 0.0, expires_after: float | None = None
) -> NewRun:
    rules = (Cooldown(1, 60),)
    return new_run(
        key="u", unique=unique, join=join, cooldowns=rules, delay=delay, expires_after=expires_after, policy=Policy()
    )


async def queued(stage: Stage) -> object:
    return await stage.store.put([equal(delay=9)])


async def late(stage: Stage) -> None:
    await stage.store.put([equal(expires_after=5)])
    stage.wait(10)


async def running(stage: Stage) -> Run:
    return await stage.running(equal())


async def done(stage: Stage) -> object:
    return await stage.end(await stage.running(equal()), Succeeded())


async def failed(stage: Stage) -> object:
    return await stage.end(await stage.running(equal()), Failed(BOOM))


async def disabled(stage: Stage) -> object:
    return await stage.store.declare([TaskSpec(GREET, enabled=False)])


async def nothing(stage: Stage) -> None:
    return


async def full(stage: Stage) -> object:
    return await stage.store.put([new_run(), new_run()])


TRIES: list[tuple[Scene, NewRun, Reason]] = [
    (nothing, new_run(), Reason.ACCEPTED),
    (nothing, equal(), Reason.ACCEPTED),
    (queued, equal(), Reason.JOINED),
    (queued, equal(join="push", delay=99), Reason.JOINED),
    (queued, equal(join="refuse"), Reason.ALREADY_QUEUED),
    (late, equal(join="refuse"), Reason.ACCEPTED),
    (running, equal("active"), Reason.ALREADY_RUNNING),
    (running, equal("queued"), Reason.ACCEPTED),
    (done, equal("done"), Reason.ALREADY_DONE),
    (failed, equal("active"), Reason.RESTING),
    (disabled, new_run(), Reason.DISABLED),
    (full, new_run(max_pending=2), Reason.QUEUE_FULL),
    (full, new_run(max_pending=3), Reason.ACCEPTED),
]


class TryContract(Staged):
    @pytest.mark.parametrize(("scene", "new", "reason"), TRIES)
    async def test_a_try_answers_what_a_put_then_does_and_changes_nothing(
        self, stage: Stage, scene: Scene, new: NewRun, reason: Reason
    ) -> None:
        await scene(stage)

        async def all_there_is() -> tuple[object, ...]:
            runs = (await stage.store.runs(RunQuery(limit=100))).runs
            decisions = (await stage.store.rows(DecisionCount)).items
            marks = (await stage.store.rows(MarkRow)).items
            return sorted(runs, key=lambda run: run.id), decisions, marks, (await stage.store.depths()).items

        before = await all_there_is()
        (tried,) = (await stage.store.try_put(new)).items
        (again,) = (await stage.store.try_put(new)).items
        assert tried.reason is reason
        assert await all_there_is() == before
        (put,) = (await stage.store.put([new])).items
        assert [tried, again] == [put, put]

    async def test_an_id_of_ones_own_is_tried_too(self, stage: Stage) -> None:
        new = replace(new_run(id="mine"), fingerprint="one")
        assert (await stage.store.try_put(new)).items == [Decision("mine", Reason.ACCEPTED)]
        await stage.store.put([new])
        assert (await stage.store.try_put(new)).items == [Decision("mine", Reason.JOINED)]
        other = replace(new_run(id="mine"), fingerprint="two")
        assert (await stage.store.try_put(other)).items == [Decision("mine", Reason.ID_CONFLICT)]
