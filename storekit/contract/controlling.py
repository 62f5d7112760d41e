"""control: cancel, and which of cancel and settle wins."""

from msgspec.structs import replace

from rota.domain.decision import Reason
from rota.domain.lifecycle import Cancelled, Failed, Lost, Released, Succeeded
from rota.domain.run import State
from rota.domain.settlement import Verdict
from rota.store import Command, Renewal
from storekit.contract.stage import BOOM, Stage, Staged, new_run


class ControlContract(Staged):
    async def test_a_queued_run_is_cancelled_at_once(self, stage: Stage) -> None:
        new = new_run()
        await stage.put(new)
        queued = await stage.see(new)
        reply = await stage.store.control(Command.CANCEL, [new.id], "not needed")
        assert reply.items == [True]
        assert await stage.see(new) == replace(
            queued,
            state=State.CANCELLED,
            reason=Reason.CANCELLED,
            note="not needed",
            finished_at=reply.now,
        )
        assert (await stage.claim()).runs == []

    async def test_a_running_run_is_told_when_it_renews(self, stage: Stage) -> None:
        run = await stage.running()
        assert await stage.cancel(run, "stop it") is True
        assert await stage.see(run) == replace(run, cancel_requested=True, note="stop it")
        assert await stage.renew(run) is Renewal.CANCEL
        assert await stage.renew(run) is Renewal.CANCEL
        assert await stage.end(run, Cancelled()) is Verdict.APPLIED
        ended = await stage.see(run)
        assert (ended.state, ended.reason, ended.note) == (State.CANCELLED, Reason.CANCELLED, "stop it")

    async def test_a_finish_beats_the_command(self, stage: Stage) -> None:
        run = await stage.running()
        await stage.cancel(run)
        assert await stage.end(run, Succeeded(b"1")) is Verdict.APPLIED
        ended = await stage.see(run)
        assert (ended.state, ended.reason, ended.result) == (State.SUCCEEDED, None, b"1")

    async def test_a_requeue_honours_the_command(self, stage: Stage) -> None:
        for outcome in (Released(), Failed(BOOM)):
            run = await stage.running()
            await stage.cancel(run)
            assert await stage.end(run, outcome) is Verdict.APPLIED
            ended = await stage.see(run)
            assert (ended.state, ended.reason) == (State.CANCELLED, Reason.CANCELLED)
            assert ended.finished_at == ended.attempts[-1].ended_at
            assert await stage.end(run, outcome) is Verdict.ALREADY
        stage.wait(601)
        assert (await stage.claim()).runs == []

    async def test_a_rescue_honours_the_command(self, stage: Stage) -> None:
        run = await stage.lapsed()
        await stage.cancel(run)
        assert await stage.end(run, Lost()) is Verdict.APPLIED
        ended = await stage.see(run)
        assert (ended.state, ended.reason, ended.losses) == (State.CANCELLED, Reason.CANCELLED, 1)

    async def test_a_final_run_stays_as_it_is(self, stage: Stage) -> None:
        run = await stage.ended()
        stage.wait(10)
        assert await stage.cancel(run, "too late") is False
        assert await stage.see(run) == run
        cancelled = new_run()
        await stage.put(cancelled)
        await stage.cancel(cancelled, "first")
        before = await stage.see(cancelled)
        assert await stage.cancel(cancelled, "second") is False
        assert await stage.see(cancelled) == before

    async def test_runs_are_answered_one_by_one_and_in_order(self, stage: Stage) -> None:
        ended, running, queued = await stage.ended(), await stage.running(), new_run()
        await stage.put(queued)
        named = [queued.id, "never-put", ended.id, running.id]
        assert (await stage.store.control(Command.CANCEL, named)).items == [True, False, False, True]
        assert (await stage.store.control(Command.CANCEL, [])).items == []
        states = [run.state for run in await stage.find(queued, ended, running)]
        assert states == [State.CANCELLED, State.SUCCEEDED, State.RUNNING]
