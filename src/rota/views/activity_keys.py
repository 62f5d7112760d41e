"""The keys of a task: what waits for each, what it rests from, and how it ended last."""

from msgspec import Struct

from rota.domain.activity import touch_guards
from rota.domain.guards import Cooldown, Mark
from rota.domain.run import Run, State
from rota.domain.spec import TaskSpec
from rota.store import MarkRow, Reads, RowQuery, RunQuery
from rota.views.values import iso

MOST = 500
"""Keys of an answer. The runs that wait are read first: a key without one is of less interest."""


class KeyView(Struct, frozen=True):
    """`run` waits or runs for the key; `rests_until` is when a cooldown ends, and `breaker` whether it is one after
    failures."""

    key: str
    run: str | None
    state: str | None
    due_at: str | None
    rests_until: str | None
    breaker: bool
    succeeded_at: str | None
    finished_at: str | None
    failures: int


async def key_views(store: Reads, spec: TaskSpec, part: str | None) -> tuple[list[KeyView], bool]:
    """Return the keys that contain `part`, and whether there may be more."""
    live = (State.QUEUED, State.RUNNING, State.PAUSED)
    page = await store.runs(RunQuery(task=spec.name, state=live, limit=MOST))
    marks = await store.rows(MarkRow, RowQuery(task=spec.name, limit=MOST))
    runs = {run.key: run for run in reversed(page.runs) if run.key is not None}
    known = {row.key: row.mark or Mark() for row in marks.items}
    names = [key for key in dict.fromkeys((*runs, *known)) if part is None or part.lower() in key.lower()]
    rules = _rules(spec)
    found = [_view(key, runs.get(key), known.get(key, Mark()), rules, page.now) for key in names[:MOST]]
    return found, page.cursor is not None or len(marks.items) == MOST or len(names) > MOST


def _rules(spec: TaskSpec) -> tuple[Cooldown, ...]:
    guards = spec.guards if spec.activity is None else touch_guards(spec.activity, spec.guards)
    return guards.cooldowns


def _view(key: str, run: Run | None, mark: Mark, rules: tuple[Cooldown, ...], now: float) -> KeyView:
    rests = [
        (mark.finished_at + rule.seconds, rule.failures > 0)
        for rule in rules
        if mark.finished_at is not None and mark.failures >= rule.failures and mark.finished_at + rule.seconds > now
    ]
    until, breaker = max(rests, default=(None, False))
    return KeyView(
        key=key,
        run=None if run is None else run.id,
        state=None if run is None else run.state.value,
        due_at=None if run is None else iso(run.due_at),
        rests_until=iso(until),
        breaker=breaker,
        succeeded_at=iso(mark.succeeded_at),
        finished_at=iso(mark.finished_at),
        failures=mark.failures,
    )
