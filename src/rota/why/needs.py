"""Trail: from a waiting run to the runs that it needs, and on to the roots, which have to be done first."""

from collections import deque
from collections.abc import Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from rota.domain import needs
from rota.domain.decision import Reason
from rota.domain.fan import Fan, awaited_fan, is_fan_need
from rota.domain.flow import CHAIN
from rota.domain.run import Run, State
from rota.domain.spec import TaskSpec
from rota.domain.text import plural
from rota.store import Reads, RowQuery, RunQuery
from rota.store.paging import first_run
from rota.why.answer import Fact, at, away
from rota.why.links import to_run

LOOKED_AT = 200
"""Needs that are followed at most."""
SHOWN = 3
LONG = 80
"""Characters of an error's text in a trail."""


class Awaited(Struct, frozen=True):
    """One need of the run `by`, and the newest run that can meet it."""

    need: str
    by: Run
    run: Run | None
    off: TaskSpec | None = None
    """The spec of the run's task, if the task is paused or disabled."""
    fan: Fan | None = None
    """The fan whose children have to end, if `by` is a gather."""

    @property
    def is_root(self) -> bool:
        """Does it need a person to be met?"""
        if self.fan is not None:
            return False
        return self.run is None or self.run.state.final or self.run.state is State.PAUSED or self.off is not None


async def follow(store: Reads, run: Run) -> list[Awaited]:
    """Return all that `run` waits for, the nearest first."""
    found: list[Awaited] = []
    ahead, seen = deque([run]), set[str]()
    while ahead and len(found) < LOOKED_AT:
        waiting = ahead.popleft()
        for need in waiting.needs:
            if need in seen:
                continue
            seen.add(need)
            found.append(await _awaited(store, waiting, need))
            if (above := found[-1].run) is not None and above.state is State.QUEUED:
                ahead.append(above)
    return await _with_tasks(store, found)


async def _awaited(store: Reads, waiting: Run, need: str) -> Awaited:
    if is_fan_need(need):
        fans = (await store.rows(Fan, RowQuery(names=[awaited_fan([need]) or ""]))).items
        return Awaited(need, waiting, None, fan=next(iter(fans), None))
    return Awaited(need, waiting, await _newest(store, waiting, need))


async def _with_tasks(store: Reads, found: list[Awaited]) -> list[Awaited]:
    """Add the specs of paused and disabled tasks to the needs whose runs could start otherwise."""
    ready = {each.need: each.run.task for each in found if each.run is not None and _is_ready(each.run)}
    if not ready:
        return found
    specs = (await store.rows(TaskSpec, RowQuery(names=sorted(set(ready.values()))))).items
    off = {spec.name: spec for spec in specs if spec.starts_nothing}
    return [replace(each, off=off.get(ready.get(each.need, ""))) for each in found]


def _is_ready(run: Run) -> bool:
    return run.state is State.QUEUED and not run.needs


async def _newest(store: Reads, waiting: Run, need: str) -> Run | None:
    """Return the newest run that can meet `need`. A need by name is met in the group of `waiting`, so that only this
    group is read."""
    named = needs.named(need)
    if named is None:
        query = RunQuery(ids=[need])
    else:
        group = None if waiting.member is None else waiting.member.group
        query = RunQuery(group=group, task=named.task, key=named.key, limit=1)
    return await first_run(store, query)


def about_needs(run: Run, trail: Sequence[Awaited], now: float) -> Iterator[Fact]:
    """Report the roots first, because they are the answer; then what `run` itself waits for."""
    roots = [awaited for awaited in trail if awaited.is_root]
    for root in roots[:SHOWN]:
        link = None if root.run is None else to_run(root.run.id)
        yield Fact("blocked", f"blocked by {_spoken(root)}: {root_words(root, now)}", holds=True, link=link)
    if len(roots) > SHOWN:
        yield Fact("blocked", f"and by {plural(len(roots) - SHOWN, 'other')}", holds=True)
    for awaited in trail:
        if awaited.fan is not None:
            link = to_run(awaited.by.id)
            yield Fact("run", f"run {awaited.by.id} waits for {_children(awaited.fan)}", True, link=link)
    own = [awaited for awaited in trail if awaited.by.id == run.id and awaited.fan is None]
    for awaited in own[:SHOWN]:
        yield Fact("run", f"run {run.id} waits for {_spoken(awaited)} {_end(awaited)}{_meanwhile(awaited, now)}", True)
    if len(own) > SHOWN:
        yield Fact("run", f"run {run.id} waits for {plural(len(own) - SHOWN, 'other')} as well", True)


def _children(fan: Fan) -> str:
    if fan.total is None:
        return f"the runs of its list, which still grows; {fan.ended:,} have ended"
    failed = f"; {fan.failed:,} have ended without success" if fan.failed else ""
    return f"{max(0, fan.total - fan.ended):,} of {fan.total:,} runs to end{failed}"


def root_words(root: Awaited, now: float) -> str:
    """Return what is wrong with a root, and what to do."""
    run = root.run
    if run is None:
        named = needs.named(root.need)
        if named is None:
            return "it is forgotten"
        return f"no run of it is known, so it was never started or is forgotten{_start(root.by)}"
    if root.off is not None and root.off.paused:
        return f"its task {run.task} is paused; `rota tasks resume {run.task}`"
    if root.off is not None:
        return f"its task {run.task} is disabled; set enabled=true and restart its workers"
    match run.state:
        case State.PAUSED:
            note = f" ({run.note})" if run.note else ""
            return f"it is paused{note}; `rota runs resume {run.id}`"
        case State.SUCCEEDED:
            return f"it succeeded {at(run.finished_at or now, now)}, but that was reset since; {again(run)}"
        case State.FAILED:
            return f"it failed {at(run.finished_at or now, now)}{_error(run)}; {again(run)}"
        case _:
            return f"it was cancelled {at(run.finished_at or now, now)}{_cancelled(run)}; {again(run)}"


def again(run: Run, verb: str = "rerun") -> str:
    """Return the command that does a step again: by its flow, if the flow has a name that people know."""
    member = run.member
    flow, _, period = ("", "", "") if member is None else member.group.rpartition("@")
    if member is not None and member.step and flow != CHAIN:  # a chain has no code that could be asked
        which = "" if verb == "start" else f" {member.step}"
        return f"`rota flows {verb} {flow}{which} --period {period}`"
    return f"`rota runs retry {run.id}`"


def _start(waiting: Run) -> str:
    known = again(waiting, "start")
    return f"; {known}" if " flows " in known else ""


def _spoken(awaited: Awaited) -> str:
    if is_fan_need(awaited.need):
        return "the runs of its list"
    named = needs.named(awaited.need)
    return f"run {awaited.need}" if named is None else f"{named.key} (task {named.task})"


def _end(awaited: Awaited) -> str:
    named = needs.named(awaited.need)
    return "to succeed" if named is not None and not named.any_end else "to end"


def _meanwhile(awaited: Awaited, now: float) -> str:
    run = awaited.run
    if run is None or awaited.is_root:
        return ""
    if run.state is State.RUNNING:
        return f", which runs on {run.worker}, begun {away(run.claimed_at or now, now)}"
    if run.needs:
        return ", which waits itself"
    retried = f" (try {run.failures + 1}, after {_short(str(run.error))})" if run.failures and run.error else ""
    return f", which is due {away(run.due_at, now)}{retried}"


def _error(run: Run) -> str:
    return f": {_short(str(run.error))}" if run.error else f" ({run.reason})" if run.reason else ""


def _cancelled(run: Run) -> str:
    why = run.note or (str(run.reason) if run.reason not in (None, Reason.CANCELLED) else "")
    return f" ({_short(why)})" if why else ""


def _short(text: str) -> str:
    return text if len(text) <= LONG else f"{text[: LONG - 1]}…"
