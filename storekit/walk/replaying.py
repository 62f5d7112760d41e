"""Plays paths of a walk on another store: it must give the answers of the ledger and show the same runs."""

from typing import Any

from msgspec.structs import replace

from rota.domain.run import Run
from rota.domain.schedule import Schedule, Tick
from rota.store import Backend, RunQuery, Store
from storekit.walk.acting import Event
from storekit.walk.walking import Path
from storekit.walk.worlds import BASE, SCHEDULE, STEP, World


async def replay(world: World, path: Path, backend: Backend) -> int:
    """Play a path of a walk on the empty store of `backend`, and return its number of events."""
    events: list[str] = []
    async with backend.open() as store:
        base = (await store.runs(RunQuery(ids=[]))).now
        await store.declare([world.spec, _shifted(SCHEDULE, base)])
        for event, expected, place in path:
            events.append(str(event))
            if event.name == "the clock moves":
                backend.skew += STEP
            if event.verb:
                answer = await _control(store, event, base)
                assert _comparable(event, answer) == _comparable(event, expected), (
                    f"{_comparable(event, answer)}, the ledger says {_comparable(event, expected)}, after {events}"
                )
            page = await store.runs(RunQuery(limit=100))
            shown = {run.id: _seen(run, base) for run in page.runs}
            known = {run.id: _seen(run, BASE) for run in place.frozen.runs}
            assert shown == known, f"the store shows {shown}, the ledger {known}, after {events}"
    return len(events)


async def _control(store: Store, event: Event, base: float) -> Any:
    args = event.args
    if event.verb == "fire":
        args = ([_shifted(tick, base) for tick in args[0]],)
    return await getattr(store, event.verb)(*args)


def _shifted(what: Any, base: float) -> Any:
    """Return a schedule or a tick with its instants moved to the clock of another store."""
    if isinstance(what, Tick):
        return replace(what, next_at=None if what.next_at is None else what.next_at - BASE + base)
    assert isinstance(what, Schedule)
    instants = {name: getattr(what, name) - BASE + base for name in ("anchor", "next_at", "fires_at")}
    return replace(what, **instants)


def _comparable(event: Event, answer: Any) -> Any:
    """Return an answer without its instants. The lapsed runs of a claim are left out: they are hints."""
    if event.verb == "claim":
        return [(run.id, run.fence, run.worker) for run in answer.runs]
    return answer.items


def _seen(run: Run, base: float) -> tuple[object, ...]:
    """Return a run without the fields that differ by milliseconds, by parking, or by the order of needs."""
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
