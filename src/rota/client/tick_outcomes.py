"""Tick outcomes: what became of the ticks of a schedule, with the run of each."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from msgspec import Struct

from rota.domain.decision import Reason
from rota.domain.run import Run, State
from rota.domain.schedule import Firing, Schedule
from rota.domain.ticks import run_of
from rota.store import Reads, RunQuery


class TickOutcome(Struct, frozen=True):
    """One tick. `reason` says whether the tick made a run.

    `run_id` is the run that the tick made or joined, or the run because of which it made none. `run` is None if there
    is no such run, or if the store has forgotten it.
    """

    firing: Firing
    run_id: str | None
    run: Run | None = None

    @property
    def nominal(self) -> datetime:
        return datetime.fromtimestamp(self.firing.nominal, UTC)

    @property
    def reason(self) -> Reason:
        return self.firing.reason

    @property
    def made(self) -> bool:
        """Did the tick make a run of its own?"""
        return self.reason is Reason.ACCEPTED

    @property
    def state(self) -> State | None:
        """The state of the run that this tick made or joined."""
        return self.run.state if self.run is not None and self.reason in (Reason.ACCEPTED, Reason.JOINED) else None

    @property
    def word(self) -> str:
        """The state of the run; without a run, the reason for that."""
        if self.state is not None:
            return str(self.state)
        return "forgotten" if self.made else str(self.reason)


async def outcomes_of(store: Reads, schedules: Sequence[Schedule], most: int) -> list[list[TickOutcome]]:
    """Return the last `most` ticks of each schedule, oldest first. One read fetches the runs of all of them."""
    ids = {run_of(schedule, firing) for schedule in schedules for firing in schedule.recent[-most:]}
    wanted = [id for id in ids if id is not None]
    runs = {run.id: run for run in (await store.runs(RunQuery(ids=wanted))).runs} if wanted else {}
    return [
        [_outcome(run_of(schedule, firing), firing, runs) for firing in schedule.recent[-most:]]
        for schedule in schedules
    ]


def _outcome(run: str | None, firing: Firing, runs: Mapping[str, Run]) -> TickOutcome:
    return TickOutcome(firing, run, None if run is None else runs.get(run))
