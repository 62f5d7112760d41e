"""Unique keys that span time or tasks: windows (`within`), and keys that several tasks share (`unique_in`)."""

import asyncio

import pytest
from msgspec.structs import replace

from rota.domain.decision import Decision, Reason
from rota.domain.guards import Guards, Mark, Unique
from rota.domain.intake import retry_of
from rota.domain.lifecycle import Failed, Outcome, Succeeded, settlement_of
from rota.domain.policy import Policy
from rota.domain.run import NewRun, State
from rota.domain.spec import TaskSpec, unique_row
from rota.domain.tuning import Retention
from rota.store import MarkRow, RowQuery
from storekit.contract.stage import BOOM, GREET, Stage, Staged, new_run

WINDOW = 600.0
DAY = 86_400.0


def windowed(task: str = GREET, sliding: bool = False, key: str = "k") -> NewRun:
    guards = Guards(unique="done", within=WINDOW, sliding=sliding)
    return replace(new_run(task, key=key, unique="done", policy=Policy()), guards=guards)


def sharing(task: str, unique: Unique = "active", key: str = "k", **more: object) -> NewRun:
    """Return a run of a task that shares its unique keys as `invoice`."""
    guards = Guards(unique=unique, unique_in="invoice", **more)  # type: ignore[arg-type]
    return replace(new_run(task, key=key, unique=unique, policy=Policy()), guards=guards)


async def end(stage: Stage, task: str = GREET, outcome: Outcome = Succeeded(b"1")) -> None:  # noqa: B008
    (run,) = (await stage.claim("ada", 1, tasks=[task])).runs
    await stage.settle(settlement_of(run, outcome))


class WindowContract(Staged):
    async def test_a_window_counts_from_the_first_accepted_arrival(self, stage: Stage) -> None:
        assert await stage.admit(first := windowed())
        stage.wait(400)
        assert await stage.admit(windowed()) == Decision(first.id, Reason.JOINED)
        await end(stage)
        stage.wait(199)
        assert await stage.admit(windowed()) == Decision(first.id, Reason.ALREADY_DONE)
        stage.wait(2)
        assert await stage.admit(second := windowed()), "601 s after the arrival, 201 s after the success"
        await end(stage)
        stage.wait(599)
        assert await stage.admit(windowed()) == Decision(second.id, Reason.ALREADY_DONE)

    async def test_a_sliding_window_counts_from_the_last_arrival_of_any_kind(self, stage: Stage) -> None:
        assert await stage.admit(first := windowed(sliding=True))
        stage.wait(400)
        (run,) = (await stage.claim("ada", 1)).runs
        assert (await stage.admit(windowed(sliding=True))).reason is Reason.ALREADY_RUNNING
        await stage.settle(settlement_of(run, Succeeded(b"1")))
        for _ in range(3):
            stage.wait(599)
            assert await stage.admit(windowed(sliding=True)) == Decision(first.id, Reason.ALREADY_DONE)
        stage.wait(601)
        assert await stage.admit(windowed(sliding=True))

    async def test_a_submit_that_is_sent_again_does_not_slide_the_window(self, stage: Stage) -> None:
        first = replace(windowed(sliding=True), fingerprint="of the same arguments")
        assert await stage.admit(first)
        await end(stage)
        stage.wait(400)
        assert await stage.admit(first) == Decision(first.id, Reason.JOINED)
        stage.wait(201)
        assert await stage.admit(windowed(sliding=True)), "601 s after the arrival"

    async def test_only_a_success_of_the_window_keeps_others_out(self, stage: Stage) -> None:
        await stage.put(windowed())
        await end(stage)
        stage.wait(601)
        await stage.put(failing := windowed())
        await end(stage, outcome=Failed(BOOM))
        assert (await stage.see(failing)).state is State.FAILED
        assert await stage.admit(windowed()), "the success before this window does not count"

    async def test_a_window_longer_than_the_run_lasts_keeps_no_second_run_waiting(self, stage: Stage) -> None:
        await stage.put(first := windowed())
        stage.wait(601)
        assert await stage.admit(windowed()) == Decision(first.id, Reason.JOINED), "an unfinished run still counts"
        assert await stage.admit(replace(first, delay=0.0)), "the same put again"
        assert (await stage.store.rows(MarkRow, RowQuery(task=f"window {GREET}"))).items[0].mark is not None

    async def test_a_success_that_is_older_than_the_window_option_counts_from_its_end(self, stage: Stage) -> None:
        await stage.ended(new_run(key="k", unique="done"))
        stage.wait(599)
        assert (await stage.admit(windowed())).reason is Reason.ALREADY_DONE
        stage.wait(2)
        assert await stage.admit(windowed())

    async def test_rows_of_windows_are_forgotten(self, stage: Stage) -> None:
        spec = TaskSpec(GREET, guards=windowed().guards)
        row = unique_row(spec)
        assert row is not None
        await stage.store.declare([row, spec])
        await stage.put(windowed())
        await end(stage)
        stage.wait(9 * DAY)
        await stage.store.sweep(Retention())
        assert (await stage.store.rows(MarkRow)).items == []


class SharedKeyContract(Staged):
    @pytest.mark.parametrize("unique", ["active", "done"])
    async def test_a_key_is_unique_across_the_tasks_that_share_it(self, stage: Stage, unique: Unique) -> None:
        assert await stage.admit(bill := sharing("bill", unique))
        assert await stage.admit(sharing("refund", unique)) == Decision(bill.id, Reason.ALREADY_QUEUED)
        assert await stage.admit(sharing("bill", unique)) == Decision(bill.id, Reason.JOINED)
        assert await stage.admit(other := sharing("refund", unique, key="other"))
        (run,) = (await stage.claim("ada", 1, tasks=["bill"])).runs
        assert await stage.admit(sharing("refund", unique)) == Decision(bill.id, Reason.ALREADY_RUNNING)
        await stage.settle(settlement_of(run, Succeeded(b"1")))
        after = await stage.admit(refund := sharing("refund", unique))
        if unique == "done":
            assert after == Decision(bill.id, Reason.ALREADY_DONE)
        else:
            assert after == Decision(refund.id, Reason.ACCEPTED)
            assert await stage.admit(sharing("bill", unique)) == Decision(refund.id, Reason.ALREADY_QUEUED)
        assert await stage.admit(sharing("bill", unique, key="other")) == Decision(other.id, Reason.ALREADY_QUEUED)

    async def test_a_failure_frees_the_key_and_a_retry_takes_it_again(self, stage: Stage) -> None:
        await stage.put(bill := sharing("bill", "done"))
        await end(stage, "bill", Failed(BOOM))
        retry = replace(
            retry_of(await stage.see(bill)), guards=Guards(unique="active", unique_in="invoice", marks=True)
        )
        assert await stage.admit(retry)
        assert await stage.admit(sharing("refund", "done")) == Decision(retry.id, Reason.ALREADY_QUEUED)
        await end(stage, "bill")
        assert await stage.admit(sharing("refund", "done")) == Decision(retry.id, Reason.ALREADY_DONE)

    async def test_the_window_of_shared_keys_is_one(self, stage: Stage) -> None:
        await stage.put(bill := sharing("bill", "done", within=WINDOW))
        await end(stage, "bill")
        stage.wait(599)
        assert await stage.admit(sharing("refund", "done", within=WINDOW)) == Decision(bill.id, Reason.ALREADY_DONE)
        stage.wait(2)
        assert await stage.admit(refund := sharing("refund", "done", within=WINDOW))
        await end(stage, "refund", Failed(BOOM))
        assert await stage.admit(sharing("bill", "done", within=WINDOW)), refund.id

    async def test_one_batch_and_many_puts_at_once_give_a_key_to_one_task(self, stage: Stage) -> None:
        refund, bill = sharing("refund"), sharing("bill")
        assert (await stage.store.put([refund, bill])).items == [
            Decision(refund.id, Reason.ACCEPTED),
            Decision(refund.id, Reason.ALREADY_QUEUED),
        ]
        for number in range(8):
            news = [sharing(f"task{each}", key=f"key{number}") for each in range(4)]
            answers = await asyncio.gather(*(stage.store.put([new]) for new in news))
            assert [each.items[0].reason for each in answers].count(Reason.ACCEPTED) == 1

    async def test_an_expired_run_of_another_task_keeps_nobody_out(self, stage: Stage) -> None:
        await stage.put(replace(sharing("bill"), expires_after=10))
        stage.wait(11)
        assert await stage.admit(sharing("refund"))

    async def test_the_row_names_the_run_and_its_task(self, stage: Stage) -> None:
        await stage.put(bill := sharing("bill"))
        (row,) = (await stage.store.rows(MarkRow, RowQuery(task="unique invoice"))).items
        assert row.mark is not None
        assert (row.key, row.mark.holder) == ("k", f"bill {bill.id}")
        copy = MarkRow("unique invoice", "copied", replace(row.mark, holder=f"bill {bill.id}"))
        assert (await stage.store.mark([copy])).items == [True]
        assert (await stage.store.mark([copy])).items == [False]
        assert (await stage.store.mark([MarkRow("unique invoice", "k", None)])).items == [True]
        assert await stage.admit(sharing("refund")), "who clears the row lets another task have the key"
        assert copy.mark != Mark()
