"""What the code declares and what the store keeps, read together at one moment of the store's clock."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from rota.app.app import Rota
from rota.cli.options.target import Target
from rota.cli.schedules.find import opened
from rota.client.fleet import is_alive
from rota.domain.difference import started
from rota.domain.flow import group_of
from rota.domain.once import period_at
from rota.domain.rehearsal import FlowShape
from rota.domain.schedule import Schedule
from rota.domain.spec import TaskSpec
from rota.errors import InvalidOptions
from rota.flow import Flow
from rota.store import RunQuery, Stat, Store, WorkerSeen, bucket_seconds

LOOKED_BACK = 2 * 24 * 60
"""Minutes of recorded durations: all that a store keeps."""


class Timetable(Struct, frozen=True):
    """`owner` is the app's name; without an app, nothing is declared. `durations` are the usual ones by task, `flows`
    those of the app."""

    now: float
    tz: str
    owner: str
    declared: Sequence[Schedule]
    stored: Mapping[str, Schedule]
    specs: Sequence[TaskSpec]
    published: Mapping[str, TaskSpec]
    durations: Mapping[str, float]
    seats: int
    flows: Mapping[str, FlowShape]

    def is_disabled(self, schedule: Schedule) -> bool:
        """Its ticks make no runs, by the code of the app or, where it does not have the task, by what was published."""
        specs = {**self.published, **{spec.name: spec for spec in self.specs}}
        spec = specs.get(schedule.task)
        return schedule.deadline is None and spec is not None and not spec.enabled

    def started(self) -> dict[str, Schedule]:
        """All schedules as they are once this code has started."""
        try:
            return started(self.declared, self.stored, self.now)
        except ValueError as error:
            raise InvalidOptions(str(error)) from None


async def read_timetable(target: Target, app: Rota | None) -> Timetable:
    async with opened(target) as (stored, store):
        schedules = await stored.list()
        published = await store.rows(TaskSpec)
        workers = await store.rows(WorkerSeen)
        stats = await store.stats(LOOKED_BACK)
        flows = [await _shape(store, flow, workers.now) for flow in (app.flows.values() if app else ())]
    seats = sum(worker.report.seats for worker in workers.items if is_alive(worker, workers.now))
    return Timetable(
        now=published.now,
        tz=app.settings.tz if app else target.tz(),
        owner=app.settings.name if app else "",
        declared=app.declared() if app else [],
        stored={schedule.id: schedule for schedule in schedules},
        specs=app.specs() if app else [],
        published={spec.name: spec for spec in published.items},
        durations=usual_durations(stats.items),
        seats=seats,
        flows={flow.name: flow for flow in flows},
    )


async def _shape(store: Store, flow: Flow, now: float) -> FlowShape:
    """With its period of now, if that has begun."""
    period = period_at(flow.once, now)
    runs = (await store.runs(RunQuery(group=group_of(flow.name, period), limit=1))).runs
    return FlowShape(flow.name, flow.once, flow.specs, frozenset([period] if runs else ()))


def usual_durations(stats: Iterable[Stat]) -> dict[str, float]:
    """Seconds that half of the calls of each task stay within."""
    calls: dict[str, Counter[int]] = defaultdict(Counter)
    for stat in stats:
        calls[stat.tally.task].update(stat.tally.durations)
    return {task: _median(counts) for task, counts in calls.items() if counts}


def _median(counts: Mapping[int, int]) -> float:
    half, seen = sum(counts.values()) / 2, 0
    for index in sorted(counts):
        seen += counts[index]
        if seen >= half:
            return bucket_seconds(index)
    return 0.0
