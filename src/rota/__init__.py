"""rota: work that runs on time, once, and visibly."""

from rota.app.app import Rota
from rota.app.status import Health, Status, TaskStatus
from rota.client.handle import RunHandle
from rota.client.tick_outcomes import TickOutcome
from rota.domain.activity import Activity, Breaker
from rota.domain.decision import Decision, Reason
from rota.domain.period import Period
from rota.domain.policy import Limit, Rate, Retry
from rota.domain.results import StatusReport, status_dict
from rota.domain.run import Run, State
from rota.domain.schedule import Schedule
from rota.domain.triggers import At, Cron, DailyAt, Every, Monthly, Trigger, Weekly
from rota.domain.user_key import UserKey
from rota.engine.context import Context
from rota.engine.hooks import Event
from rota.engine.steps import Inputs
from rota.errors import (
    Discard,
    DuplicateTask,
    InvalidArguments,
    InvalidOptions,
    MissingExtra,
    NoStore,
    NotRunning,
    QueueFull,
    Refused,
    Restless,
    RetryAfter,
    RotaError,
    RunCancelled,
    RunEnded,
    RunFailed,
    RunNotFound,
    ScheduleNotFound,
    ScheduleTaken,
    SchemaTooNew,
    Snooze,
    StoreCorrupt,
    StoreError,
    StoreUnavailable,
    TaskError,
    UnknownTask,
    Unstorable,
    UsageError,
)
from rota.flow import Flow, FlowStatus, Step, StepStatus
from rota.schedules.plans import PlanReport
from rota.store import Depth
from rota.task import Bound, Chain, ChainHandle, Task
from rota.why import Fact, Why

__all__ = [
    "Activity",
    "At",
    "Bound",
    "Breaker",
    "Chain",
    "ChainHandle",
    "Context",
    "Cron",
    "DailyAt",
    "Decision",
    "Depth",
    "Discard",
    "DuplicateTask",
    "Event",
    "Every",
    "Fact",
    "Flow",
    "FlowStatus",
    "Health",
    "Inputs",
    "InvalidArguments",
    "InvalidOptions",
    "Limit",
    "MissingExtra",
    "Monthly",
    "NoStore",
    "NotRunning",
    "Period",
    "PlanReport",
    "QueueFull",
    "Rate",
    "Reason",
    "Refused",
    "Restless",
    "Retry",
    "RetryAfter",
    "Rota",
    "RotaError",
    "Run",
    "RunCancelled",
    "RunEnded",
    "RunFailed",
    "RunHandle",
    "RunNotFound",
    "Schedule",
    "ScheduleNotFound",
    "ScheduleTaken",
    "SchemaTooNew",
    "Snooze",
    "State",
    "Status",
    "StatusReport",
    "Step",
    "StepStatus",
    "StoreCorrupt",
    "StoreError",
    "StoreUnavailable",
    "Task",
    "TaskError",
    "TaskStatus",
    "TickOutcome",
    "Trigger",
    "UnknownTask",
    "Unstorable",
    "UsageError",
    "UserKey",
    "Weekly",
    "Why",
    "status_dict",
]
