"""Names that nothing can have (a NUL, a lone surrogate): they find nothing and harm no other name in the call."""

import asyncio

import pytest

from rota.domain.decision import DecisionCount
from rota.domain.run import State
from rota.domain.schedule import Schedule
from rota.domain.spec import TaskSpec
from rota.errors import Unstorable
from rota.store import Command, MarkRow, RowQuery, RunQuery, Scope
from storekit.contract.stage import Stage, Staged, ids, new_run

ODD = ("a\x00b", "\x00", "a\ud800b", "x" * 5000, "", "a\nb")


class NamingContract(Staged):
    async def test_a_run_of_an_odd_id_is_not_found_and_those_beside_it_are(self, stage: Stage) -> None:
        one, two = new_run(), new_run()
        await stage.put(one, two)
        page = await stage.store.runs(RunQuery(ids=[one.id, *ODD, two.id]))
        assert ids(page.runs) == [one.id, two.id]
        assert page.now > 0

    async def test_no_run_meets_an_odd_condition(self, stage: Stage) -> None:
        await stage.put(new_run(key="k"))
        for name in ODD:
            for query in (RunQuery(task=name), RunQuery(key=name), RunQuery(group=name)):
                page = await stage.store.runs(query)
                assert (page.runs, page.cursor) == ([], None)

    @pytest.mark.parametrize("kind", [TaskSpec, Schedule, MarkRow, DecisionCount])
    async def test_no_row_has_an_odd_name(self, stage: Stage, kind: type[object]) -> None:
        await stage.declare()
        for name in ODD:
            assert (await stage.store.rows(kind, RowQuery(names=[name], task=name))).items == []

    @pytest.mark.parametrize("command", [command for command in Command if command is not Command.DELETE])
    async def test_a_command_about_an_odd_id_changes_nothing_and_those_beside_it_hold(
        self, stage: Stage, command: Command
    ) -> None:
        for name in ODD:
            one, two = new_run(), new_run()
            await stage.put(one, two)
            if command is Command.RESUME:
                await stage.pause(one)
                await stage.pause(two)
            assert (await stage.store.control(command, [one.id, name, two.id])).items == [1, 0, 1]
            assert (await stage.store.control(command, [name], of=Scope.SCHEDULES)).items == [0]

    async def test_what_a_person_says_is_kept_as_far_as_it_can_be(self, stage: Stage) -> None:
        for name in ODD:
            run = new_run()
            await stage.put(run)
            assert await stage.cancel(run, f"because {name}")
            seen = await stage.see(run)
            assert seen.state is State.CANCELLED
            assert (seen.note or "").startswith("because")

    async def test_a_run_that_cannot_be_stored_harms_no_run_beside_it(self, stage: Stage) -> None:
        """Puts of one process may share a call: only the run that cannot be stored fails, with Unstorable."""
        for name in ODD:
            news = [new_run(), new_run(), new_run(key=name), new_run(), new_run()]
            answers = await asyncio.gather(*(stage.store.put([new]) for new in news), return_exceptions=True)
            odd = answers.pop(2)
            assert not isinstance(odd, BaseException) or isinstance(odd, Unstorable)
            assert not [answer for answer in answers if isinstance(answer, BaseException)]
            assert len(await stage.find(*news[:2], *news[3:])) == 4
