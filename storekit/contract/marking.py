"""mark: marks are set and cleared, and guards read them."""

from rota.domain import needs
from rota.domain.decision import Reason
from rota.domain.guards import Cooldown, Mark
from rota.store import MarkRow, RowQuery
from storekit.contract.stage import GREET, Stage, Staged, ids, new_run

DONE = Mark(succeeded_at=1.5, finished_at=1.5)


class MarkContract(Staged):
    async def marks(self, stage: Stage) -> list[MarkRow]:
        return (await stage.store.rows(MarkRow, RowQuery(task=GREET))).items

    async def test_what_is_set_is_known_and_what_is_cleared_is_forgotten(self, stage: Stage) -> None:
        one, two = MarkRow(GREET, "one", DONE), MarkRow(GREET, "two", Mark(finished_at=2.0, failures=3))
        assert (await stage.store.mark([one, two])).items == [True, True]
        assert await self.marks(stage) == [one, two]
        assert (await stage.store.mark([one, MarkRow(GREET, "two", None), MarkRow(GREET, "none", None)])).items == [
            False,
            True,
            False,
        ]
        assert await self.marks(stage) == [one]

    async def test_guards_judge_by_what_was_set(self, stage: Stage) -> None:
        now = await stage.now()
        await stage.store.mark([MarkRow(GREET, "k", Mark(succeeded_at=now, finished_at=now))])
        done = await stage.admit(new_run(unique="done", key="k"))
        assert done.reason is Reason.ALREADY_DONE
        rests = await stage.admit(new_run(key="k", cooldowns=(Cooldown(0, 60),)))
        assert rests.reason is Reason.RESTING
        await stage.store.mark([MarkRow(GREET, "k", None)])
        assert await stage.admit(new_run(unique="done", key="k"))

    async def test_a_call_that_sets_and_clears_a_mark_meets_needs_between(self, stage: Stage) -> None:
        await stage.put(waits := new_run(needs=[needs.ended(GREET, "k")]))
        edits = [MarkRow(GREET, "k", DONE), MarkRow(GREET, "k", None), MarkRow(GREET, "k", None)]
        assert (await stage.store.mark(edits)).items == [True, True, False]
        assert await self.marks(stage) == []
        assert ids((await stage.claim()).runs) == [waits.id]
