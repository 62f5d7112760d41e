"""The way of one run: every outcome has exactly one settlement, and nothing leads out of a final state."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from rota.domain.decision import Reason
from rota.domain.lifecycle import (
    UNBINDABLE_RELEASES,
    BadResult,
    Cancelled,
    Crashed,
    Discarded,
    Failed,
    Interrupted,
    Lost,
    Outcome,
    Paused,
    Released,
    RetryAsked,
    Skipped,
    Snoozed,
    Succeeded,
    TimedOut,
    Unbindable,
    settlement_of,
)
from rota.domain.policy import Backoff, Policy, Retry
from rota.domain.run import Failure, Note, Progress, Run, State
from rota.domain.settlement import (
    Charge,
    Finish,
    Requeue,
    Settlement,
    Verdict,
    apply,
    cancel,
    claim,
    expire,
    judge,
    noted,
    pause,
    resume,
)

BOOM = Failure("ValueError", "boom")
RUN = Run(id="run", task="greet", state=State.RUNNING, fence=1, worker="ada", claimed_at=100.0, until=130.0)
STEADY = Retry(3, backoff="fixed", delay=10, jitter=0)

OUTCOMES: list[Outcome] = [
    Succeeded(b"1"),
    Failed(BOOM),
    Failed(BOOM, Retry(0)),
    TimedOut(BOOM),
    BadResult(BOOM),
    Unbindable(BOOM),
    Cancelled(),
    Interrupted(),
    Released(),
    Lost(),
    RetryAsked(BOOM, 40.0),
    Snoozed(50.0),
    Discarded(BOOM),
    Skipped("nothing to do"),
    Paused(),
    Crashed(BOOM),
]
outcomes = st.sampled_from(OUTCOMES)
policies = st.sampled_from([Policy(), Policy(retry=STEADY, max_losses=2), Policy(lost="fail"), Policy(retry=Retry(1))])
events = st.sampled_from(["claim", "settle", "settle", "cancel", "pause", "resume", "expire", "wait"])


def running(policy: Policy = Policy(), **changes: int) -> Run:  # noqa: B008 (frozen)
    return replace(RUN, policy=policy, **changes)


@given(policies, st.lists(st.tuples(events, outcomes), max_size=40))
def test_nothing_leads_out_of_a_final_state_and_counters_only_grow(
    policy: Policy, story: list[tuple[str, Outcome]]
) -> None:
    run, now = Run(id="run", task="greet", policy=policy, expires_at=500.0), 0.0
    for event, outcome in story:
        now += 40.0
        before, run = run, step(run, event, outcome, now)
        if before.state.final:
            assert run == before
        charged = (run.failures - before.failures, run.losses - before.losses)
        assert charged in {(0, 0), (1, 0), (0, 1)}
        assert (charged == (0, 1)) <= isinstance(outcome, Lost | Crashed)
        assert (charged == (1, 0)) <= isinstance(outcome, Failed | TimedOut | BadResult | RetryAsked | Discarded)
        assert run.fence - before.fence == (before.state is State.QUEUED and run.state is State.RUNNING)
        assert (run.worker is not None) == (run.until is not None) == (run.state is State.RUNNING)
        assert run.state.final == (run.finished_at is not None)


def step(run: Run, event: str, outcome: Outcome, now: float) -> Run:
    """As a store does it, which claims and expires only what is queued."""
    match event, run.state:
        case "claim", State.QUEUED:
            return claim(run, "ada", 30.0, now)
        case "expire", State.QUEUED:
            return expire(run, now)
        case "cancel", _:
            return cancel(run, now, "please")
        case "pause", _:
            return pause(run, "please")
        case "resume", _:
            return resume(run, "please")
        case "settle", _:
            settlement = settlement_of(run, outcome)
            verdict = judge(run, settlement, now)
            assert (verdict is Verdict.APPLIED) == (run.state is State.RUNNING)
            return apply(run, settlement, now) if verdict is Verdict.APPLIED else run
        case _:
            return run


@given(policies, outcomes, st.integers(0, 10), st.integers(0, 10), st.none() | st.floats(0, 1e6))
def test_every_outcome_has_exactly_one_settlement(
    policy: Policy, outcome: Outcome, failures: int, losses: int, seconds: float | None
) -> None:
    run = running(policy, failures=failures, losses=losses, fence=9)
    settlement = settlement_of(run, outcome, seconds)
    assert settlement == settlement_of(run, outcome, seconds)
    assert (settlement.run, settlement.fence, settlement.seconds) == (run.id, 9, seconds)
    assert settlement.lost == isinstance(outcome, Lost)
    assert settlement.called != isinstance(outcome, Released | Unbindable)
    match settlement.action:
        case Finish(state, reason):
            assert state.final
            assert (reason in (None, Reason.SKIPPED)) == (state is State.SUCCEEDED)
            assert settlement.mark != (reason is Reason.SKIPPED)
        case Requeue(delay):
            assert delay >= 0


def ending(run: Run, outcome: Outcome) -> tuple[Finish | Requeue, Charge]:
    settlement = settlement_of(run, outcome)
    return settlement.action, settlement.charge


@pytest.mark.parametrize(
    ("outcome", "action", "charge"),
    [
        (Succeeded(b"1"), Finish(State.SUCCEEDED, result=b"1"), Charge.NONE),
        (Failed(BOOM), Finish(State.FAILED, Reason.FAILED), Charge.FAILURE),
        (TimedOut(BOOM), Finish(State.FAILED, Reason.TIMED_OUT), Charge.FAILURE),
        (BadResult(BOOM), Finish(State.FAILED, Reason.BAD_RESULT), Charge.FAILURE),
        (Unbindable(BOOM), Requeue(5.0), Charge.NONE),
        (Cancelled(), Finish(State.CANCELLED, Reason.CANCELLED), Charge.NONE),
        (Interrupted(), Requeue(), Charge.NONE),
        (Released(), Requeue(), Charge.NONE),
        (Lost(), Requeue(), Charge.LOSS),
        (RetryAsked(BOOM, 40.0), Finish(State.FAILED, Reason.FAILED), Charge.FAILURE),
        (Snoozed(50.0), Requeue(50.0), Charge.NONE),
        (Discarded(BOOM), Finish(State.FAILED, Reason.DISCARDED), Charge.FAILURE),
        (Failed(BOOM, partial=True), Finish(State.FAILED, Reason.PARTIAL), Charge.FAILURE),
        (Skipped("nothing to do"), Finish(State.SUCCEEDED, Reason.SKIPPED), Charge.NONE),
        (Paused(), Requeue(paused=True), Charge.NONE),
        (Crashed(BOOM), Requeue(), Charge.LOSS),
    ],
)
def test_without_a_policy_each_outcome_ends_so(outcome: Outcome, action: Finish | Requeue, charge: Charge) -> None:
    assert ending(running(), outcome) == (action, charge)


@pytest.mark.parametrize("outcome", [Failed(BOOM), TimedOut(BOOM)])
def test_three_retries_are_three_more_calls(outcome: Outcome) -> None:
    policy = Policy(retry=STEADY)
    actions = [ending(running(policy, failures=failures), outcome)[0] for failures in range(5)]
    assert actions[:3] == [Requeue(10.0)] * 3
    assert [type(action) for action in actions[3:]] == [Finish, Finish]


@pytest.mark.parametrize("outcome", [BadResult(BOOM), Discarded(BOOM), Skipped("nothing to do")])
def test_what_says_that_no_retry_would_help_is_not_tried_again(outcome: Outcome) -> None:
    assert isinstance(ending(running(Policy(retry=STEADY)), outcome)[0], Finish)


def test_a_handler_names_the_time_of_its_retry_but_not_their_number() -> None:
    policy = Policy(retry=STEADY)
    actions = [ending(running(policy, failures=failures), RetryAsked(BOOM, 40.0))[0] for failures in range(5)]
    assert actions == [Requeue(40.0)] * 3 + [Finish(State.FAILED, Reason.FAILED)] * 2
    assert ending(running(policy), RetryAsked(BOOM, 0.0))[0] == Requeue(0.0)


def test_a_snooze_is_free_however_often() -> None:
    run = running(Policy(retry=Retry(0), lost="fail"), failures=9, losses=9)
    assert ending(run, Snoozed(50.0)) == (Requeue(50.0), Charge.NONE)


def test_what_was_skipped_says_why_and_leaves_no_mark() -> None:
    settlement = settlement_of(running(), Skipped("no odds today"))
    assert (settlement.error, settlement.mark) == (Failure("Skipped", "no odds today"), False)
    assert all(settlement_of(running(), outcome).mark for outcome in OUTCOMES if not isinstance(outcome, Skipped))


def test_a_crash_is_a_loss_but_no_lapsed_lease() -> None:
    """Its holder writes it: that the lease still holds is no reason to doubt it."""
    policy = Policy(retry=STEADY, max_losses=3)
    assert [ending(running(policy, losses=losses), Crashed(BOOM))[0] for losses in range(3)] == [
        Requeue(),
        Requeue(),
        Finish(State.FAILED, Reason.POISON),
    ]
    crash, lost = settlement_of(running(policy), Crashed(BOOM)), settlement_of(running(policy), Lost())
    assert (crash.lost, crash.outcome, crash.error) == (False, "crashed", BOOM)
    assert [judge(running(policy), said, 110.0) for said in (crash, lost)] == [Verdict.APPLIED, Verdict.STALE]
    assert ending(running(Policy(lost="fail")), Crashed(BOOM))[0] == Finish(State.FAILED, Reason.LOST)


def test_a_paused_run_is_held_while_the_command_stands() -> None:
    asked = pause(running(), "later")
    paused = apply(asked, settlement_of(asked, Paused()), 110.0)
    assert (paused.state, paused.pause_requested, paused.due_at) == (State.PAUSED, False, asked.due_at)
    taken_back = resume(asked, "go on")
    assert apply(taken_back, settlement_of(asked, Paused()), 110.0).state is State.QUEUED


def test_a_cancel_beats_a_pause() -> None:
    for run in (cancel(pause(running(), None), 110.0, None), pause(cancel(running(), 110.0, None), None)):
        assert (run.cancel_requested, run.pause_requested) == (True, False)
        assert apply(run, settlement_of(run, Paused()), 110.0).state is State.CANCELLED


def test_a_settlement_carries_notes_and_warnings() -> None:
    note = Note(Progress(0.5, "halfway"), b"3")
    run = apply(running(), settlement_of(running(), Snoozed(5.0), note=note, warnings=("slow",)), 110.0)
    assert (run.progress, run.saved, run.attempts[-1].warnings) == (note.progress, note.saved, ("slow",))
    assert noted(run, Note(saved=b"4")) == replace(run, saved=b"4")
    assert noted(run, Note(Progress(0.9))) == replace(run, progress=Progress(0.9))


def test_losses_do_not_draw_on_the_retries_nor_failures_on_the_losses() -> None:
    policy = Policy(retry=STEADY, max_losses=2)
    assert ending(running(policy, losses=9), Failed(BOOM)) == (Requeue(10.0), Charge.FAILURE)
    assert ending(running(policy, failures=9), Lost()) == (Requeue(), Charge.LOSS)


def test_a_run_that_kills_its_workers_is_poison() -> None:
    policy = Policy(max_losses=3)
    actions = [ending(running(policy, losses=losses), Lost())[0] for losses in range(4)]
    assert actions == [Requeue()] * 2 + [Finish(State.FAILED, Reason.POISON)] * 2


@pytest.mark.parametrize(("outcome", "reason"), [(Lost(), Reason.LOST), (Interrupted(), Reason.INTERRUPTED)])
def test_a_run_that_may_be_called_only_once_fails_when_its_worker_goes(outcome: Outcome, reason: Reason) -> None:
    action, _ = ending(running(Policy(retry=STEADY, lost="fail")), outcome)
    assert action == Finish(State.FAILED, reason)
    released, _ = ending(running(Policy(lost="fail")), Released())
    assert released == Requeue()


def test_arguments_that_do_not_fit_are_left_to_other_versions_three_times() -> None:
    run, now, delays = running(), 100.0, list[float]()
    for _ in range(UNBINDABLE_RELEASES):
        settlement = settlement_of(run, Unbindable(BOOM))
        run = apply(run, settlement, now)
        delays.append(run.due_at - now)
        run = claim(run, "bob", 30.0, now := run.due_at)
    assert delays == [5.0, 10.0, 20.0]
    last = apply(run, settlement_of(run, Unbindable(BOOM)), now)
    assert (last.state, last.reason, last.failures) == (State.FAILED, Reason.UNBINDABLE, 0)


def test_other_releases_do_not_count_as_unbindable() -> None:
    run = running()
    for _ in range(5):
        run = claim(apply(run, settlement_of(run, Released()), 100.0), "bob", 30.0, 100.0)
    assert ending(run, Unbindable(BOOM))[0] == Requeue(5.0)


@pytest.mark.parametrize(
    ("backoff", "waits"),
    [("fixed", [2, 2, 2, 2, 2]), ("linear", [2, 4, 6, 8, 10]), ("exponential", [2, 4, 8, 16, 20])],
)
def test_the_nth_retry_waits_by_its_backoff(backoff: Backoff, waits: list[float]) -> None:
    retry = Retry(9, backoff=backoff, delay=2, max_delay=20, jitter=0)
    assert [retry.wait(failures, "run") for failures in range(1, 6)] == waits


@given(st.integers(1, 10_000), st.text(), st.floats(0, 1), st.sampled_from(["exponential", "linear", "fixed"]))
def test_jitter_only_shortens_within_its_share_and_is_stable(
    failures: int, seed: str, jitter: float, backoff: Backoff
) -> None:
    exact = Retry(1, backoff=backoff, delay=2, jitter=0).wait(failures, seed)
    retry = Retry(1, backoff=backoff, delay=2, jitter=jitter)
    assert exact * (1 - jitter) <= retry.wait(failures, seed) <= exact <= retry.max_delay
    assert retry.wait(failures, seed) == retry.wait(failures, seed)


def test_jitter_differs_between_runs_and_between_retries() -> None:
    retry = Retry(1, backoff="fixed", delay=100, jitter=0.5)
    waits = {retry.wait(failures, f"run-{number}") for failures in range(1, 11) for number in range(10)}
    assert len(waits) == 100
    assert max(waits) - min(waits) > 40


def test_the_nearest_exception_class_has_its_rule() -> None:
    never, often = Retry(0), Retry(9)
    retry = Retry(3, rules={LookupError: never, KeyError: often, OSError: never})
    assert retry.for_error(KeyError("k")) is often
    assert retry.for_error(IndexError()) is never
    assert retry.for_error(ConnectionResetError()) is never
    assert retry.for_error(ValueError()) is retry
    assert isinstance(ending(running(Policy(retry=STEADY)), Failed(BOOM, never))[0], Finish)
    assert isinstance(ending(running(Policy()), Failed(BOOM, often))[0], Requeue)


@pytest.mark.parametrize(
    "bad",
    [
        {"limit": -1},
        {"limit": 1.5},
        {"limit": True},
        {"backoff": "random"},
        {"delay": -1},
        {"delay": float("nan")},
        {"max_delay": float("inf")},
        {"jitter": 1.1},
    ],
)
def test_a_retry_that_makes_no_sense_is_refused(bad: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=rf"^Retry\(.*{next(iter(bad))}="):
        Retry(**bad)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "bad", [{"timeout": 0}, {"timeout": float("nan")}, {"timeout": -1}, {"lost": "maybe"}, {"max_losses": 0}]
)
def test_a_policy_that_makes_no_sense_is_refused(bad: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=f"^{next(iter(bad))}="):
        Policy(**bad)  # type: ignore[arg-type]


def test_a_settlement_of_an_unknown_run_is_stale() -> None:
    assert judge(None, Settlement("run", 1, "ada", Requeue(), "released"), 0.0) is Verdict.STALE
