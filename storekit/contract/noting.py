"""Notes: the progress and the checkpoint of a handler."""

import pytest
from msgspec.structs import replace

from rota.domain.lifecycle import Failed, Lost, Outcome, Paused, Released, Snoozed, Succeeded, settlement_of
from rota.domain.run import Note, Progress, Run
from rota.domain.settlement import Verdict
from rota.domain.tail import TAIL, packed
from rota.store import Renewal
from storekit.contract.stage import BOOM, LEASE, Stage, Staged, new_run

HALF = Note(Progress(0.5, "halfway"), b'{"page":3}')


class NoteContract(Staged):
    async def note(self, stage: Stage, run: Run, note: Note) -> Renewal:
        (answer,) = (await stage.store.renew([run.lease], LEASE, {run.id: note})).items
        return answer

    async def test_a_renewal_carries_progress_and_checkpoint(self, stage: Stage) -> None:
        run = await stage.running()
        async with stage.listening() as ear:
            assert await self.note(stage, run, HALF) is Renewal.OK
            assert run.id in await ear.runs()
        seen = await stage.see(run)
        assert (seen.progress, seen.saved) == (HALF.progress, HALF.saved)
        assert await stage.renew(run) is Renewal.OK
        after = await stage.see(run)
        assert after == replace(seen, until=after.until)

    async def test_what_a_note_leaves_out_stays(self, stage: Stage) -> None:
        run = await stage.running()
        await self.note(stage, run, HALF)
        await self.note(stage, run, Note(Progress(0.75)))
        seen = await stage.see(run)
        assert (seen.progress, seen.saved) == (Progress(0.75), HALF.saved)
        await self.note(stage, run, Note(saved=b"null"))
        seen = await stage.see(run)
        assert (seen.progress, seen.saved) == (Progress(0.75), b"null")

    async def test_notes_reach_their_own_runs_only(self, stage: Stage) -> None:
        await stage.put(*(new_run() for _ in range(3)))
        one, two, three = (await stage.claim(free=3)).runs
        notes = {two.id: HALF, "never-put": HALF}
        await stage.store.renew([one.lease, two.lease, three.lease], LEASE, notes)
        assert [run.saved for run in await stage.find(one, two, three)] == [None, HALF.saved, None]

    async def test_the_note_of_a_zombie_changes_nothing(self, stage: Stage) -> None:
        zombie = await stage.lapsed()
        await stage.end(zombie, Lost())
        assert await self.note(stage, zombie, HALF) is Renewal.LOST
        holder = await stage.take("bob")
        assert (holder.progress, holder.saved) == (None, None)
        assert await self.note(stage, zombie, HALF) is Renewal.LOST
        assert await stage.settle(settlement_of(zombie, Succeeded(), note=HALF)) is Verdict.STALE
        assert await stage.see(zombie) == holder

    async def test_a_note_travels_with_a_command(self, stage: Stage) -> None:
        run = await stage.running()
        await stage.pause(run)
        assert await self.note(stage, run, HALF) is Renewal.PAUSE
        await stage.cancel(run)
        assert await self.note(stage, run, Note(Progress(0.9))) is Renewal.CANCEL
        seen = await stage.see(run)
        assert (seen.progress, seen.saved) == (Progress(0.9), HALF.saved)

    @pytest.mark.parametrize("outcome", [Succeeded(b"1"), Failed(BOOM), Paused(), Released()])
    async def test_a_settlement_carries_the_last_note(self, stage: Stage, outcome: Outcome) -> None:
        run = await stage.running()
        await self.note(stage, run, Note(Progress(0.1), b"1"))
        assert await stage.settle(settlement_of(run, outcome, note=HALF)) is Verdict.APPLIED
        seen = await stage.see(run)
        assert (seen.progress, seen.saved) == (HALF.progress, HALF.saved)

    async def test_a_checkpoint_survives_whatever_brings_the_run_back(self, stage: Stage) -> None:
        run = await stage.running()
        await self.note(stage, run, HALF)
        for outcome in (Failed(BOOM), Released(), Lost(), Paused(), Snoozed(5)):
            stage.wait(LEASE + 1)
            await stage.pause(run)
            assert await stage.end(run, outcome) is Verdict.APPLIED
            await stage.resume(run)
            stage.wait(601)
            run = await stage.take()
            assert (run.saved, run.progress) == (HALF.saved, HALF.progress)
        await stage.end(run, Succeeded(b"1"))
        ended = await stage.see(run)
        assert (ended.saved, ended.result) == (HALF.saved, b"1")

    async def test_warnings_are_kept_with_their_attempt(self, stage: Stage) -> None:
        run = await stage.running()
        await stage.settle(settlement_of(run, Released(), warnings=("slow disk", 'odd "name" 🦉')))
        run = await stage.take()
        await stage.settle(settlement_of(run, Succeeded()))
        kept = [attempt.warnings for attempt in (await stage.see(run)).attempts]
        assert kept == [("slow disk", 'odd "name" 🦉'), ()]

    async def test_the_log_of_an_attempt_is_kept_and_that_of_a_stale_one_is_not(self, stage: Stage) -> None:
        logged = 'a "line" 🦉\n' * 4000  # 64 KiB and more
        run = await stage.running()
        old = replace(settlement_of(run, Released()), log=packed(logged))
        await stage.settle(old)
        run = await stage.take()
        stale = replace(settlement_of(run, Succeeded()), fence=run.fence + 1, log=packed("a zombie\n"))
        await stage.settle(stale)
        await stage.settle(settlement_of(run, Succeeded()))
        await stage.settle(old)  # its answer got lost
        ended = await stage.see(run)
        assert [attempt.logged[-9:] for attempt in ended.attempts] == ['"line" 🦉\n', ""]
        assert len(ended.attempts[0].logged.encode(errors="replace")) <= TAIL + 3
