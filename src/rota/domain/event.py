"""Event: something that happened to a run, a task or a schedule. Hooks and readers of `app.events` get events."""

from msgspec import Struct
from msgspec.structs import force_setattr

from rota.domain.run import Failure, Run

GAP = "gap"
"""The name of the event that says: events before this one are not known any more."""


class Event(Struct, frozen=True):
    """Something that happened.

    In a hook, `run` is the run as it was claimed, or as it ended if it never started. `attempt` counts the calls of the
    run, including this one. `seconds` is how long this call took, `ended_at` when its end was recorded (Unix seconds by
    the store's clock). `origin` says what made the run: "submit", "touch", "schedule", "run_now", "retry", "flow" (also
    for a chain) or "plan".

    In `app.events`, `run` is None. `of` says what `id` names: "runs", "tasks" or "schedules"; "" for a gap. `state` and
    `fence` are those of the run after the change, `at` is the time of the change by the store's clock, and `group` the
    flow, chain or plan that the run belongs to. `cursor` is where to go on after this event.

    In both, `reason` is a word for what became of the run, and `worker` the worker that called it. `key` and `note` say
    what a passed deadline was about.
    """

    name: str
    task: str
    run: Run | None = None
    reason: str = ""
    error: Failure | None = None
    note: str = ""
    key: str | None = None
    attempt: int = 0
    seconds: float | None = None
    ended_at: float | None = None
    id: str | None = None
    worker: str | None = None
    of: str = "runs"
    state: str = ""
    fence: int = 0
    at: float | None = None
    group: str | None = None
    cursor: str = ""

    def __post_init__(self) -> None:
        if self.run is not None:
            force_setattr(self, "id", self.run.id)
            force_setattr(self, "worker", self.run.worker)

    @property
    def origin(self) -> str | None:
        return None if self.run is None else self.run.origin.kind
