"""Which runs and rows to read."""

from collections.abc import Mapping, Sequence
from typing import Literal

from msgspec import Struct

from rota.domain.flow import group_of
from rota.domain.run import Run, State
from rota.domain.secrets import searchable
from rota.errors import InvalidOptions

Instant = Literal["created", "due", "finished"]
"""An instant of a run: when the run was made, when it is or was due, when it ended."""
INSTANTS: tuple[Instant, ...] = ("created", "due", "finished")
SCHEDULED = ("schedule", "run_now")
"""The origins of a run that a schedule made."""
TEXT_LIMIT = 200
"""The most characters of `RunQuery.q`."""
TASKS_LIMIT = 1000
"""The most tasks that one query names."""
NO_GROUP = "\x00"
"""The group of a flow and a period that no store can carry: it has no runs."""
UNORDERED = 60.0
"""Seconds by which the created times of two runs may contradict their order of arrival."""


class RunQuery(Struct, frozen=True, kw_only=True):
    """Which runs to read: the one filter of the stores, of `app.runs` and of `rota runs`. A run meets all conditions.

    The stores have indexes for `ids` and `group` (also `flow` with `period`), for `key`, for failures, and for ended
    runs by time; SQLite and PostgreSQL also for `task`; Redis for `task` if the order is not that of arrival. With
    another condition a store walks one of these indexes, and looks at a bounded number of runs for each page: see
    `Page.searched_back_to`.
    """

    ids: Sequence[str] | None = None
    """Only the runs with these ids."""
    state: str | Sequence[str] = ()
    """Only runs in this state, or in one of these; empty: in any state."""
    task: str | Sequence[str] | None = None
    """Only runs of this task, or of one of these; None or empty: of any task."""
    key: str | None = None
    """Only runs whose `key` or `unique_key` this is."""
    queue: str | Sequence[str] | None = None
    """Only runs of this queue, or of one of these; None or empty: of any queue."""
    group: str | None = None
    """Only the runs of this group."""
    schedule: str | None = None
    """Only runs that this schedule made."""
    flow: str | None = None
    """Only steps of this flow; with `period`, of that period of the flow."""
    period: str | None = None
    """Only runs of the period with this name."""
    origin: str | None = None
    """Only runs with this `Origin.kind`, such as submit, retry or schedule."""
    worker: str | None = None
    """Only runs that this worker has, or had in an attempt that the run remembers."""
    error: str | None = None
    """Only runs with an error of this type, with or without the name of its module."""
    reason: str | None = None
    """Only runs with this reason."""
    retry_of: str | None = None
    """Only the run that repeats the run with this id."""
    since: float | None = None
    """Only runs whose instant `by` is this or later. Unix seconds by the store's clock."""
    until: float | None = None
    """Only runs whose instant `by` is earlier than this."""
    by: Instant = "created"
    """The instant that `since` and `until` are about."""
    q: str | None = None
    """Only runs that have this text, in upper or lower case, in their id, key, task, error or arguments."""
    order: Instant = "created"
    """`created`: the last arrival first. `finished`: ended runs, the last end first. `due`: unfinished runs, the first
    due first. A list by due time or by end within a group is sorted: it has at most 5,000 runs."""
    limit: int = 50
    """The most runs in one page."""
    cursor: str | None = None
    """Where the page before ended: its `Page.cursor`."""
    brief: bool = False
    """Let a store that has no index by state, task or key look at a bounded number of runs for a page with such
    conditions, too. Who shows a page to people says so; who needs the whole answer reads on behind the cursor."""

    def __post_init__(self) -> None:
        if self.q is not None and not 0 < len(self.q) <= TEXT_LIMIT:
            raise InvalidOptions(f"q has {len(self.q)} characters: from 1 to {TEXT_LIMIT}")
        for name, value in (("by", self.by), ("order", self.order)):
            if value not in INSTANTS:
                raise InvalidOptions(f"{name}={value!r}: choose {', '.join(INSTANTS)}")
        for word in _several(self.state):
            if word not in _STATES:
                raise InvalidOptions(f"state={word!r}: choose {', '.join(_STATES)}")
        if len(_several(self.task)) > TASKS_LIMIT:
            raise InvalidOptions(f"task names {len(_several(self.task))} tasks: at most {TASKS_LIMIT}")

    @property
    def states(self) -> tuple[State, ...]:
        """The states that the runs may have; empty: any."""
        wanted = tuple(State(word) for word in _several(self.state))
        if self.order == "created":
            return wanted
        ended = self.order == "finished"
        return tuple(state for state in wanted or State if state.final is ended)

    @property
    def tasks(self) -> tuple[str, ...]:
        """The tasks that the runs may have; empty: any."""
        return _several(self.task)

    @property
    def in_group(self) -> str | None:
        """The group to which all runs of the query belong, if the query names one."""
        if self.group is None and self.flow is not None and self.period is not None:
            try:
                return group_of(self.flow, self.period)
            except ValueError:
                return NO_GROUP
        return self.group

    @property
    def impossible(self) -> bool:
        """Whether no run has the wanted states in the wanted order."""
        return self.order != "created" and not self.states

    @property
    def names(self) -> list[str]:
        """All names in the query, without ids."""
        named = (self.key, self.in_group, self.schedule, self.flow, self.period, self.worker, self.retry_of)
        return [name for name in (*named, *self.tasks, *_several(self.queue)) if name is not None]

    @property
    def counts(self) -> bool:
        """Whether stores can count the runs without reading them (`CountsRuns`)."""
        timed = self.since is not None or self.until is not None
        return self.ids is None and self.order == "created" and not timed and not self.walks

    @property
    def sorts(self) -> bool:
        """Whether no index has the order of the query, so that all its runs are read and sorted."""
        return self.order != "created" and self.in_group is not None

    @property
    def walks(self) -> bool:
        """Whether some condition is judged run by run, so that one page looks at a bounded number of runs."""
        if self.sorts:
            return False  # all runs are read before they are sorted
        by_arrival = self.order == "created"
        timed = (self.since is not None and self.by != self.order) or (
            self.until is not None and (by_arrival or self.by != self.order)
        )
        alone = (self.schedule, self.origin, self.worker, self.error, self.reason, self.retry_of, self.q)
        timed = timed or (not by_arrival and self.key is not None)
        in_part = (self.flow is None) != (self.period is None) or (self.flow is not None and self.group is not None)
        return timed or in_part or bool(_several(self.queue)) or any(value is not None for value in alone)


_STATES = tuple(state.value for state in State)


def _several(given: str | Sequence[str] | None) -> tuple[str, ...]:
    return () if given is None else (given,) if isinstance(given, str) else tuple(given)


def matches(run: Run, query: RunQuery) -> bool:
    """Return whether `run` meets the conditions of `query`, without `ids`."""
    return (
        (not (states := query.states) or run.state in states)
        and (not (tasks := query.tasks) or run.task in tasks)
        and (query.key is None or query.key in (run.key, run.unique_key))
        and (not (queues := _several(query.queue)) or run.queue in queues)
        and (query.reason is None or run.reason == query.reason)
        and (query.error is None or _is_error(run, query.error))
        and (query.worker is None or query.worker == run.worker or _had(run, query.worker))
        and _comes_from(run, query)
        and _within(run, query)
        and (query.q is None or _has_text(run, query.q.lower()))
    )


def _is_error(run: Run, name: str) -> bool:
    return run.error is not None and (run.error.type == name or run.error.type.endswith(f".{name}"))


def _had(run: Run, worker: str) -> bool:
    return any(attempt.worker == worker for attempt in run.attempts)


def _comes_from(run: Run, query: RunQuery) -> bool:
    origin, group = run.origin, None if run.member is None else run.member.group
    return (
        (query.origin is None or origin.kind == query.origin)
        and (query.schedule is None or (origin.kind in SCHEDULED and origin.of == query.schedule))
        and (query.retry_of is None or (origin.kind == "retry" and origin.of == query.retry_of))
        and (query.period is None or origin.period == query.period)
        and (query.flow is None or (group is not None and group.rpartition("@")[0] == query.flow))
        and (query.group is None or group == query.group)
    )


def _within(run: Run, query: RunQuery) -> bool:
    if query.since is None and query.until is None:
        return True
    at = instant_of(run, query.by)
    if at is None:
        return False
    return (query.since is None or at >= query.since) and (query.until is None or at < query.until)


def _has_text(run: Run, text: str) -> bool:
    places = (
        run.id,
        run.task,
        run.key,
        None if run.error is None else str(run.error),
        searchable(run.body, run.args),
    )
    return any(text in place.lower() for place in places if place is not None)


def instant_of(run: Run, by: Instant) -> float | None:
    return {"created": run.created_at, "due": run.due_at, "finished": run.finished_at}[by]


class Page(Struct, frozen=True):
    """One page of runs."""

    now: float
    """The store's time."""
    runs: list[Run]
    cursor: str | None
    """The cursor of the next page; None if this page is the last one."""
    searched_back_to: float | None = None
    """The page ends here only because the store has looked at enough runs: the instant of the last one, by the order of
    the query. The cursor goes on from there. None if the page is full, or the last one."""


class Count(Struct, frozen=True):
    """How many runs a query finds."""

    count: int
    more: bool = False
    """There are more, or there may be: the count stopped at its bound."""


class RunCounts(Struct, frozen=True):
    """How many runs a query finds, by their task and the word of their state."""

    groups: Mapping[tuple[str, str], int]
    more: bool = False
    """There may be more: the store has not looked at all runs."""


class RowQuery(Struct, frozen=True, kw_only=True):
    """Which rows to read, in the order of their names.

    Only an empty page is surely the last one, because rows that this version cannot read are left out. The next page
    begins `after` the name of the last row.
    """

    names: Sequence[str] | None = None
    """Only the rows with these names."""
    task: str | None = None
    """Only the schedules, marks, decision counts or counts of due runs of this task."""
    key: str | None = None
    """Only the marks or decision counts of this key."""
    after: str = ""
    """Only rows whose names come after this one."""
    limit: int = 10_000
    """The most rows in one page."""


ALL_ROWS = RowQuery()


class Position(Struct, frozen=True, order=True):
    """The place of a run in a list: its instant, if the list is in the order of due times or of ends, and its number in
    the order of arrival. A cursor is a place as text."""

    at: float
    seq: int

    def cursor(self, order: Instant) -> str:
        return str(self.seq) if order == "created" else f"{self.at!r}:{self.seq}"


def after_cursor(query: RunQuery) -> Position | None:
    """Return the place at which the page before ended; None for the first page."""
    if query.cursor is None:
        return None
    at, _, seq = query.cursor.rpartition(":")
    timed = query.order != "created"
    digits = at.replace(".", "", 1)
    wrong = timed != bool(at) or (timed and not (digits.isascii() and digits.isdecimal())) or len(query.cursor) > 40
    if wrong or not seq.isascii() or not seq.isdecimal() or len(seq) > 18:
        raise InvalidOptions(f"cursor {query.cursor!r} is not where a list of runs ended")
    return Position(float(at or 0.0), int(seq))
