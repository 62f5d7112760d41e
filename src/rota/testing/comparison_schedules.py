"""A store's schedules beside the model's: random declarations, ticks and wishes."""

from collections.abc import Coroutine
from typing import Any, TypeVar

from hypothesis import strategies as st

from rota.domain.decision import Decided, Decision, Reason
from rota.domain.run import NewRun
from rota.domain.schedule import Missed, Schedule, Tick
from rota.store import Claim, Declared, Fired, RowQuery, RunQuery, Store, Subject, Wish
from rota.testing.model import Model
from rota.testing.model_schedules import show_schedule

T = TypeVar("T")

IDS = ("s", "t", "u")
WISHES = (Wish.PAUSE, Wish.PAUSE, Wish.RESUME, Wish.RESUME, Wish.RESUME, Wish.DROP, Wish.CANCEL)
misses = st.sampled_from([None, None, None, Missed(1.0, 1.0, 1), Missed(1.0, 7.5, 3), Missed(1.0, 9.0, 100, True)])


@st.composite
def new_schedules(draw: st.DrawFn, now: float) -> Schedule:
    """Few words to say, so that the same is said again."""
    at = draw(st.sampled_from([None, now + 1, now + 5, now + 5, now + 40]))
    return Schedule(
        id=draw(st.sampled_from(IDS)),
        trigger=draw(st.sampled_from(["every 5s", "every 5s", "every 6s"])),
        task=draw(st.sampled_from(["a", "a", "a", "limited"])),
        body='{"v":1,"args":1}',
        key="k",
        priority=draw(st.sampled_from([0, 0, 0, 1])),
        owner=draw(st.sampled_from(["app", "app", "app", "app", ""])),
        anchor=now,
        next_at=at,
        fires_at=None if at is None else at + draw(st.sampled_from([0.0, 0.0, 2.5])),
    )


class ScheduleOperations:
    """What a Comparison does to schedules."""

    store: Store
    model: Model
    ticks: list[Tick]

    def wait(self, coroutine: Coroutine[Any, Any, T]) -> T:
        raise NotImplementedError

    def draw_runs(self, data: st.DataObject, most: int) -> list[NewRun]:
        raise NotImplementedError

    def declare_schedules(self, data: st.DataObject) -> None:
        now = self.wait(self.store.runs(RunQuery(ids=[]))).now
        items = data.draw(st.lists(new_schedules(now), min_size=1, max_size=3))
        reply = self.wait(self.store.declare(items))
        expected = [self.model.timetable.declare(item, reply.now) for item in items]
        assert reply.items == [Declared(answer) for answer in expected]

    def fire(self, data: st.DataObject) -> None:
        """As somebody planned it who has read the schedule, now and then from one that has changed since."""
        plans = self.model.timetable.plans
        if not plans:
            return self.declare_schedules(data)
        ticks: list[Tick] = []
        for id in data.draw(st.lists(st.sampled_from(sorted(plans)), min_size=1, max_size=2)):
            said = plans[id].said
            version = said["version"] - (data.draw(st.integers(0, 5)) == 0)
            then = data.draw(st.sampled_from([None, *[(said["next_at"] or 0.0) + step for step in (5.0, 5.0, 60.0)]]))
            runs = self.draw_runs(data, 2)
            nominals = tuple(float(place) for place in range(len(runs)))
            missed = data.draw(misses)
            ticks.append(Tick(id, version, said["next_at"], then, then, tuple(runs), nominals, missed))
        self.ticks += ticks
        return self.send_ticks(ticks)

    def fire_again(self, data: st.DataObject) -> None:
        if self.ticks:
            self.send_ticks(data.draw(st.lists(st.sampled_from(self.ticks[-6:]), min_size=1, max_size=3)))

    def send_ticks(self, ticks: list[Tick]) -> None:
        reply = self.wait(self.store.fire(ticks))
        for fired, tick in zip(reply.items, ticks, strict=True):
            answers = self.model.fire(tick, reply.now)
            if answers is None:
                assert fired == Fired(False)
            else:
                assert fired == Fired(True, tuple(Decision(run, Reason(reason)) for run, reason in answers))

    def ask_schedules(self, data: st.DataObject) -> None:
        wish, note = data.draw(st.sampled_from(WISHES)), data.draw(st.sampled_from([None, "why"]))
        ids = data.draw(st.lists(st.sampled_from([*IDS, "never"]), min_size=1, max_size=3))
        reply = self.wait(self.store.ask(wish, ids, note, of=Subject.SCHEDULES))
        assert reply.items == [self.model.ask_schedule(wish, id, note, reply.now) for id in ids]

    def check_due(self, claim: Claim, offered: bool) -> None:
        expected = self.model.timetable.offer(claim.now) if offered else set[str]()
        assert {schedule.id for schedule in claim.due} == expected
        assert len(claim.due) == len(expected)
        plans = self.model.timetable.plans
        assert all(show_schedule(schedule) == plans[schedule.id].said for schedule in claim.due)

    def check_timetable(self) -> None:
        shown = {row.id: show_schedule(row) for row in self.wait(self.store.rows(Schedule)).items}
        assert shown == {id: plan.said for id, plan in self.model.timetable.plans.items()}
        decided = self.wait(self.store.rows(Decided, RowQuery(limit=1000))).items
        assert [row.last_at for row in decided] == sorted((row.last_at for row in decided), reverse=True)
        rows = {(row.task, row.key, str(row.reason)): _told(row) for row in decided}
        assert rows == {
            name: [*row[:3], _run(name[2], row[3]), row[4]] for name, row in self.model.decisions.rows.items()
        }


def _told(row: Decided) -> list[Any]:
    return [row.count, row.first_at, row.last_at, _run(row.reason, row.run), row.note]


def _run(reason: str, run: str | None) -> str | None:
    """Of several that expire in one step, nobody can say which is the last."""
    return None if reason == "expired" else run
