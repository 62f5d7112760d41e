"""Random runs, tasks, schedules, outcomes and commands for stories. There are few values, so that they collide."""

from collections.abc import Sequence
from random import Random
from typing import Any, TypeVar

from msgspec.structs import replace

from rota.domain import codec, lifecycle, needs
from rota.domain.decision import Reason
from rota.domain.ended import with_callbacks
from rota.domain.guards import Cooldown, Guards, Mark
from rota.domain.ids import fingerprint
from rota.domain.overrides import Overrides
from rota.domain.policy import Limit, Policy, Rate, Retry, Share
from rota.domain.run import DEFAULT_QUEUE, Callback, Failure, Member, NewRun, Note, Origin, Progress, State
from rota.domain.schedule import Missed, Schedule
from rota.domain.spec import TaskSpec, limit_row
from rota.store import Command, MarkRow, Retention, RunEdit, Terms

T = TypeVar("T")

WORKERS = ("ada", "bob", "cyd")
LEASES = (10.0, 30.0)
KEYS = ("k", "l")
UNIQUE_KEYS = ("u", "v")
GROUPS = ("g", "h")
SCHEDULES = ("s", "t", "u")
QUEUES = (DEFAULT_QUEUE, DEFAULT_QUEUE, DEFAULT_QUEUE, "red", "blue")
SERVED: tuple[tuple[str, ...], ...] = ((), (), (), ("red",), ("default", "blue"), ("red", "blue"))
"""The queues of a claim; none: all queues."""
STEPS = (1.0, 6.0, 11.0, 31.0, 61.0, 150.0)
"""Seconds by which the clock moves."""

GPU, PEN = Limit(2, name="gpu"), Limit(1, name="pen")
LIMITS = tuple(limit_row(Limit(total, name=name)) for name in ("gpu", "pen") for total in (2, 1, 3))
"""The possible numbers of named limits. The first declaration of a task that has GPU or PEN declares that limit too,
if nobody has."""
SPECS: dict[str, tuple[TaskSpec, ...]] = {
    "plain": (TaskSpec("plain"), TaskSpec("plain", enabled=False)),
    "other": (TaskSpec("other"),),
    "few": (
        TaskSpec("few", limit=Limit(2)),
        TaskSpec("few", limit=Limit(1)),
        TaskSpec("few", limit=Limit(3), rate=Rate(1, per=2.3)),
        TaskSpec("few"),
    ),
    "keyed": (
        TaskSpec("keyed", limit=Limit(per_key=2)),
        TaskSpec("keyed", limit=Limit(3, per_key=1)),
        TaskSpec("keyed", limit=Limit(per_key=1), rate=Rate(2, per=7.3, burst=2)),
    ),
    "cut": (
        TaskSpec("cut", limits=(GPU,)),
        TaskSpec("cut", limits=(GPU, PEN)),
        TaskSpec("cut"),
    ),
    "fit": (
        TaskSpec("fit", limits=(GPU,)),
        TaskSpec("fit", limit=Limit(1), limits=(GPU,)),
        TaskSpec("fit", limits=(PEN,), rate=Rate(1, per=2.3)),
    ),
    "paced": (
        TaskSpec("paced", rate=Rate(1, per=7.3)),
        TaskSpec("paced", rate=Rate(2, per=31.4, burst=3)),
        TaskSpec("paced"),
    ),
    "turns": (
        TaskSpec("turns", share=Share("{s}")),
        TaskSpec("turns", share=Share("{s}", {"x": 2, "y": 3})),
    ),
    "pacedkeys": (
        TaskSpec("pacedkeys", rate=Rate(1, per=7.3, per_key=True)),
        TaskSpec("pacedkeys", rate=Rate(3, per=31.4, burst=2, per_key=True)),
        TaskSpec("pacedkeys", limit=Limit(per_key=1), rate=Rate(1, per=3.7, burst=2, per_key=True)),
    ),
}
"""The tasks and their possible declarations. The first declaration is in force from the start."""
INNOCENT = ("keyed", "pacedkeys", "turns")
"""Tasks whose runs never have losses. A store has only the best runs of a saturated key in its lanes, so the model
could not say what a worker gets that may not have the first of them."""

OVERRIDES: tuple[dict[str, Any], ...] = (
    {},
    {},
    {"enabled": False},
    {"limit": Limit(1)},
    {"limit": Limit(2), "retry": Retry(0)},
    {"rate": Rate(1, per=5.2)},
    {"rate": Rate(2, per=9.1, burst=2), "limit": Limit(3)},
    {"retry": Retry(5, backoff="fixed", delay=3, jitter=0), "timeout": 60.0},
)
"""What an operator may say of any task whose runs take no turns."""
OVERRIDES_BY_KEY: tuple[dict[str, Any], ...] = (
    {"limit": Limit(per_key=1)},
    {"limit": Limit(2, per_key=2)},
    {"rate": Rate(1, per=4.1, per_key=True)},
)
"""The same for the tasks of INNOCENT, because they hold up keys."""
OVERRIDES_IN_TURNS: tuple[dict[str, Any], ...] = ({}, {"enabled": False}, {"retry": Retry(0)})

SHARES = ("x", "y", "z")
IN_TURNS = "turns"
"""The task whose runs take turns. They have a priority and a queue of their own, because stores may choose how they go
together with runs that are due at the same time."""

MOST_PENDING = {"other": 2}
"""Tasks with a `max_pending`."""

RETRYING = Retry(2, backoff="fixed", delay=7, jitter=0)
POLICIES = (Policy(retry=RETRYING, max_losses=3), Policy(lost="fail"))
OUTCOMES: tuple[lifecycle.Outcome, ...] = (
    lifecycle.Succeeded(b"1"),
    lifecycle.Succeeded(b"2"),
    lifecycle.Failed(Failure("ValueError", "boom")),
    lifecycle.Failed(Failure("ValueError", "bang")),
    lifecycle.TimedOut(Failure("TimeoutError", "slow")),
    lifecycle.BadResult(Failure("TypeError", "odd")),
    lifecycle.Discarded(Failure("Discard", "no use")),
    lifecycle.Skipped("nothing to do"),
    lifecycle.Unbindable(Failure("TypeError", "old")),
    lifecycle.Cancelled(),
    lifecycle.Interrupted(),
    lifecycle.Released(),
    lifecycle.Crashed(Failure("Crash", "gone")),
    lifecycle.Snoozed(9),
    lifecycle.Paused(),
    lifecycle.Lost(),
)
BREAKER = (Cooldown(1, 70.0, Reason.BREAKER), Cooldown(0, 15.0))
GUARDS = (
    *[Guards()] * 4,
    Guards("queued"),
    Guards("queued", "push"),
    Guards("queued", "push", max_wait=8),
    Guards("queued", "set"),
    Guards("queued", "refuse"),
    Guards("active"),
    Guards("active", "set"),
    Guards("done"),
    Guards("done", "refuse"),
    Guards("done", within=40.0),
    Guards("done", within=40.0, sliding=True),
    Guards("active", unique_in="both"),
    Guards("done", unique_in="both"),
    Guards("done", "refuse", within=70.0, sliding=True, unique_in="both"),
    Guards("queued", cooldowns=BREAKER),
    Guards("queued", "push", cooldowns=BREAKER, behind=True),
    Guards("queued", behind=True),
    Guards("queued", "wait", behind=True),
    Guards("queued", "replace", behind=True),
    Guards("active", "full"),
    Guards(cooldowns=BREAKER),
    Guards(marks=True),
)
NOTES = (
    None,
    None,
    Note(Progress(0.5, "half"), b"1"),
    Note(saved=b"2"),
    Note(Progress(1.0)),
)
COMMANDS = (Command.CANCEL, Command.DROP, Command.PAUSE, Command.PAUSE, Command.RESUME, Command.RESUME, Command.RESUME)
MISSES = (None, None, None, Missed(1.0, 1.0, 1), Missed(1.0, 7.5, 3), Missed(1.0, 9.0, 100, True))


class Dice(Random):
    """The random choices of one step of a story."""

    def some(self, things: Sequence[T]) -> list[T]:
        """Return up to three of the last eight things, perhaps one of them twice."""
        recent = things[-8:]
        return [self.choice(recent) for _ in range(self.randint(1, 3))] if recent else []

    def rarely(self, one_in: int) -> bool:
        return self.randrange(one_in) == 0


def new_edit(dice: Dice, id: str, body: bytes | None, now: float, shared: bool) -> RunEdit:
    """Return an edit of a run that has this body; None if there is no such run. A run with a share keeps its priority:
    see IN_TURNS."""
    changes: dict[str, Any] = {}
    if dice.rarely(2):
        changes["due_at"] = now + dice.choice([-5.0, 0.0, 5.5, 40.0])
    if dice.rarely(2) and not shared:
        changes["priority"] = dice.choice([-1, 0, 1])
    if dice.rarely(4):
        changes["expires_at"] = now + dice.choice([3.0, 50.0])
    if body is not None and dice.rarely(3):
        known = codec.decode(body)
        args = dice.choice([b"1", b"2", b"3"])
        changes["body"] = codec.encode(args, known.origin or Origin(), known.policy or Policy(), known.member)
        changes["replaces"] = b"{}" if dice.rarely(4) else body
        changes["share"] = dice.choice([None, *SHARES]) if shared else None
    return RunEdit(run=id, **changes)


def new_run(dice: Dice, tasks: Sequence[str], id: str, now: float) -> NewRun:
    task, guards = dice.choice(tasks), dice.choice(GUARDS)
    guards = replace(guards, max_pending=MOST_PENDING.get(task))
    policy = Policy(retry=RETRYING, lost="fail") if task in INNOCENT else dice.choice(POLICIES)
    group = dice.choice(GROUPS) if dice.rarely(4) else None
    member = None if group is None else Member(group, stops=dice.rarely(2))
    in_turns = task == IN_TURNS
    return NewRun(
        id=id,
        task=task,
        body=codec.encode(dice.choice([b"1", b"2"]), Origin(), policy, member),
        key=dice.choice([None, *KEYS]),
        unique_key=dice.choice(UNIQUE_KEYS) if guards.unique else None,
        guards=guards,
        priority=2 if in_turns else dice.choice([-1, 0, 0, 1]),
        delay=dice.choice([0.0, 0.0, 0.0, 0.0, 5.0, 50.0]),
        at=now + dice.choice([-40.0, 20.0]) if dice.rarely(8) else None,
        expires_after=dice.choice([0.0, 20.0, 20.0]) if dice.rarely(6) else None,
        expires_at=now + 25.0 if dice.rarely(20) else None,
        group=group,
        queue=DEFAULT_QUEUE if in_turns else dice.choice(QUEUES),
        share=dice.choice(SHARES) if in_turns else None,
    )


def with_extras(dice: Dice, new: NewRun, tasks: Sequence[str]) -> NewRun:
    """Return `new`, perhaps with an id of its submitter's own or with callbacks."""
    if dice.rarely(4):
        new = replace(new, fingerprint=fingerprint(new.task, codec.decode(new.body).args))
    called = [task for task in tasks if task not in INNOCENT and task not in MOST_PENDING]
    if called and dice.rarely(6):
        states = dice.sample([State.SUCCEEDED, State.FAILED, State.CANCELLED], 2)
        new = with_callbacks(new, tuple(Callback(state, dice.choice(called)) for state in states))
    return new


def new_needs(dice: Dice, tasks: Sequence[str], ids: Sequence[str]) -> tuple[str, ...]:
    """Return needs: ids of runs that were put, perhaps ended or forgotten, and names."""
    name = dice.choice((needs.done, needs.ended))
    named = [name(dice.choice(tasks), dice.choice((*KEYS, *UNIQUE_KEYS, "")))] if dice.rarely(2) else []
    return tuple(dict.fromkeys([*dice.some(ids), *named]))


def new_schedule(dice: Dice, tasks: Sequence[str], now: float) -> Schedule:
    """Return a schedule made of few values, so that the same schedule is declared again."""
    at = dice.choice([None, now + 1, now + 5, now + 5, now + 40])
    return Schedule(
        id=dice.choice(SCHEDULES),
        trigger=dice.choice(["every 5s", "every 5s", "every 6s"]),
        task=dice.choice(tasks),
        body='{"v":1,"args":1}',
        key="k",
        priority=dice.choice([0, 0, 0, 1]),
        owner=dice.choice(["app", "app", "app", "app", ""]),
        anchor=now,
        next_at=at,
        fires_at=None if at is None else at + dice.choice([0.0, 0.0, 2.5]),
    )


def new_overrides(dice: Dice, task: str, known: Overrides) -> Overrides:
    """Return what an operator says who knows of `known`, or of what was said before that."""
    if dice.rarely(6):
        return known
    choices = OVERRIDES_IN_TURNS if task == IN_TURNS else OVERRIDES
    choices += OVERRIDES_BY_KEY if task in INNOCENT and task != IN_TURNS else ()
    return Overrides(known.version + dice.choice([1, 1, 1, 1, 0, 2]), **dice.choice(choices))


def new_terms(dice: Dice, declared: Sequence[str], versions: dict[str, int]) -> Terms:
    """Return terms of a declaration of the schedules `declared`: often those that hold, and deletions of others."""
    expected = {id: versions.get(id, 0) + (1 if dice.rarely(5) else 0) for id in {*dice.some(SCHEDULES)}}
    return Terms(expected, tuple(id for id in SCHEDULES if id not in declared and dice.rarely(2)))


def new_mark(dice: Dice, tasks: Sequence[str], now: float) -> MarkRow:
    mark = dice.choice([None, Mark(now, now), Mark(None, now, 3), Mark(now - 20, now, 1)])
    return MarkRow(dice.choice(tasks), dice.choice((*KEYS, *UNIQUE_KEYS)), mark)


def retention(dice: Dice) -> Retention:
    return Retention(
        succeeded=dice.choice([0.0, 100.0]),
        failed=dice.choice([0.0, 200.0]),
        most=dice.randint(0, 4),
        least=dice.randint(0, 4),
    )
