"""Lineage: where a run comes from, which runs repeat it, and which steps of its flow come before and after it."""

from collections.abc import Mapping, Sequence

from msgspec import Struct

from rota.domain.ids import retry_id
from rota.domain.needs import named
from rota.domain.run import Origin, Run
from rota.flow import Flow
from rota.store import Reads, RunQuery
from rota.views.values import iso

MOST = 100
"""Retries of retries that are followed in each direction."""
GROUP = 1000
"""Runs of a group that are read."""


class RunLink(Struct, frozen=True):
    """A run that another one has to do with; `step` is its step in the flow."""

    id: str
    task: str
    state: str
    created_at: str
    finished_at: str | None
    step: str | None


class LineageView(Struct, frozen=True):
    """`retry_of`: the runs that this one repeats, the nearest first. `retries`: the runs that repeat it."""

    run: str
    origin: Origin
    group: str | None
    retry_of: tuple[RunLink, ...]
    retries: tuple[RunLink, ...]
    before: tuple[RunLink, ...]
    after: tuple[RunLink, ...]


async def lineage_view(store: Reads, run: Run, flows: Mapping[str, Flow]) -> LineageView:
    """`flows` are the flows that the code of this process has: their code knows which steps follow each other."""
    before, after = await _steps(store, run, flows)
    return LineageView(
        run=run.id,
        origin=run.origin,
        group=None if run.member is None else run.member.group,
        retry_of=tuple([_link(each) for each in await _repeated(store, run)]),
        retries=tuple([_link(each) for each in await _repeating(store, run)]),
        before=tuple(_link(each) for each in before),
        after=tuple(_link(each) for each in after),
    )


def _link(run: Run) -> RunLink:
    step = (run.member.step or None) if run.member else None
    return RunLink(run.id, run.task, str(run.state), iso(run.created_at), iso(run.finished_at), step)


async def _repeated(store: Reads, run: Run) -> list[Run]:
    found: list[Run] = []
    while run.origin.kind == "retry" and run.origin.of and len(found) < MOST:
        known = (await store.runs(RunQuery(ids=[run.origin.of]))).runs
        if not known:
            break
        run = known[0]
        found.append(run)
    return found


async def _repeating(store: Reads, run: Run) -> list[Run]:
    """The id of a retry follows from the id of its run."""
    ids: list[str] = []
    id = run.id
    while len(ids) < MOST:
        ids.append(id := retry_id(id))
    return (await store.runs(RunQuery(ids=ids))).runs


async def _steps(store: Reads, run: Run, flows: Mapping[str, Flow]) -> tuple[Sequence[Run], Sequence[Run]]:
    """Return the newest runs of the steps before and after `run` in its group."""
    if run.member is None:
        return [], []
    newest: dict[str, Run] = {}
    for each in (await store.runs(RunQuery(group=run.member.group, limit=GROUP))).runs:
        if each.member is not None and each.id != run.id:
            newest.setdefault(each.member.step or each.id, each)
    flow = flows.get(run.member.group.rpartition("@")[0])
    if flow is None or run.member.step not in flow.steps:
        before = [each for each in newest.values() if _waits_for(run, each)]
        return before, [each for each in newest.values() if _waits_for(each, run)]
    step = run.member.step
    behind = [name for name, each in flow.steps.items() if step in each.spec.after]
    return _of(newest, flow.steps[step].spec.after), _of(newest, behind)


def _of(newest: Mapping[str, Run], steps: Sequence[str]) -> list[Run]:
    return [newest[step] for step in steps if step in newest]


def _waits_for(run: Run, other: Run) -> bool:
    needs = [(need, named(need)) for need in run.needs]
    return any(
        need == other.id or (name is not None and (name.task, name.key) == (other.task, other.mark_key))
        for need, name in needs
    )
