"""Trial: what a submit would answer now, guard by guard."""

from msgspec import Struct

from rota.domain.decision import Decision, Reason
from rota.domain.run import NewRun

EQUALS = (Reason.JOINED, Reason.ALREADY_QUEUED, Reason.ALREADY_RUNNING, Reason.BUFFER_FULL)


class GuardAnswer(Struct, frozen=True):
    """What one guard says: `passes`, `joins`, `refuses`, or `not_reached` because another guard decided before."""

    guard: str
    says: str
    rule: str


class Trial(Struct, frozen=True):
    """What a submit would answer. `run` is the run that it would join or that is in its way; None for a new run.
    `due_at`: when a new run would be due, in Unix seconds."""

    accepted: bool
    reason: Reason
    run: str | None
    due_at: float
    guards: tuple[GuardAnswer, ...]

    def __bool__(self) -> bool:
        return self.accepted


def trial_of(new: NewRun, decision: Decision, now: float) -> Trial:
    """Return the trial of a run for which the store has answered `decision`. The store asks the guards in this order,
    and the first that refuses decides."""
    found: list[GuardAnswer] = []
    over = False
    for guard, rule, reasons in _guards(new):
        decides = not over and decision.reason in reasons
        says = "not_reached" if over else "passes"
        if decides:
            says = "joins" if decision.reason is Reason.JOINED else "refuses"
        found.append(GuardAnswer(guard, says, rule))
        over = over or decides
    other = None if decision.run in ("", new.id) else decision.run
    return Trial(bool(decision), decision.reason, other, new.due_at(now), tuple(found))


def _guards(new: NewRun) -> list[tuple[str, str, tuple[Reason, ...]]]:
    """Return the guards of a run in the order in which a store asks them: name, rule, and the reasons that it gives."""
    guards = new.guards
    found: list[tuple[str, str, tuple[Reason, ...]]] = []
    if new.fingerprint is not None:
        found.append(("id", f"id={new.id!r}", (Reason.ID_CONFLICT,)))
    found.append(("enabled", "the task is enabled", (Reason.DISABLED,)))
    if guards.unique is not None:
        found.append(("unique", f"unique={guards.unique!r}, join={guards.join!r}, key {new.unique_key!r}", EQUALS))
    if guards.unique == "done":
        within = "" if guards.within is None else f" within {guards.within:g} s"
        found.append(("done", f"no success of the key{within}", (Reason.ALREADY_DONE,)))
    for rule in guards.cooldowns:
        words = f"after {rule.failures} failures in a row" if rule.failures else "after each end"
        found.append(("cooldown", f"{rule.seconds:g} s of rest {words}", (rule.reason,)))
    most = "the store has room" if guards.max_pending is None else f"max_pending={guards.max_pending}"
    found.append(("max_pending", most, (Reason.QUEUE_FULL,)))
    return found
