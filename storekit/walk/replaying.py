"""Paths of a walk, told to another store: it gives the ledger's answers, and shows the ledger's runs."""

from typing import Any

from msgspec.structs import replace

from rota.domain.run import Run
from rota.domain.schedule import Schedule, Tick
from rota.store import Backend, RunQuery, Store
from storekit.walk.acting import Event
from storekit.walk.walking import Path
from storekit.walk.worlds import BASE, SCHEDULE, STEP, World


async def replay(world: World, path: Path, backend: Backend) -> int:
    """Tell a path of a walk to the empty store of this backend; how many events it had."""
    told: list[str] = []
    async with backend.open() as store:
        base = (await store.runs(RunQuery(ids=[]))).now
        await store.declare([world.spec, _shifted(SCHEDULE, base)])
        for event, expected, place in path:
            told.append(str(event))
            if event.name == "the clock moves":
                backend.skew += STEP
            if event.verb:
                answer = await _control(store, event, base)
                assert _said(event, answer) == _said(event, expected), (
                    f"{_said(event, answer)}, the ledger says {_said(event, expected)}, after {told}"
                )
            page = await store.runs(RunQuery(limit=100))
            shown = {run.id: _seen(run, base) for run in page.runs}
            known = {run.id: _seen(run, BASE) for run in place.frozen.runs}
            assert shown == known, f"the store shows {shown}, the ledger {known}, after {told}"
    return len(told)


async def _control(store: Store, event: Event, base: float) -> Any:
    args = event.args
    if event.verb == "fire":
        args = ([_shifted(tick, base) for tick in args[0]],)
    return await getattr(store, event.verb)(*args)


def _shifted(what: Any, base: float) -> Any:
    """A schedule or a tick by the clock of another store."""
    if isinstance(what, Tick):
        return replace(what, next_at=None if what.next_at is None else what.next_at - BASE + base)
    assert isinstance(what, Schedule)
    instants = {name: getattr(what, name) - BASE + base for name in ("anchor", "next_at", "fires_at")}
    return replace(what, **instants)


def _said(event: Event, answer: Any) -> Any:
    """An answer without its instants. What a claim offers for rescue is a hint, and no promise."""
    if event.verb == "claim":
        return [(run.id, run.fence, run.worker) for run in answer.runs]
    return answer.items


def _seen(run: Run, base: float) -> tuple[object, ...]:
    """A run without what differs by milliseconds, by the way a store parks, or by the order in which it lists needs."""
    due = (run.due_at - base) // (STEP / 6)
    return (
        *(
            run.state,
            due,
            run.fence,
            run.failures,
            run.losses,
            run.worker,
            run.cancel_requested,
            run.pause_requested,
            run.reason,
        ),
        *(() if run.state.final else sorted(run.needs), run.awaited, run.body),
        tuple((attempt.fence, attempt.worker, attempt.outcome) for attempt in run.attempts),
    )
