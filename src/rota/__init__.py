"""rota: work that runs on time, once, and visibly."""

from rota.app import Rota
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
    QueueFull,
    Refused,
    RetryAfter,
    RotaError,
    RunCancelled,
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
from rota.handle import RunHandle
from rota.plans import PlanReport
from rota.task import Task
from rota.tick_outcomes import TickOutcome

__all__ = [
    "Activity",
    "At",
    "Breaker",
    "Context",
    "Cron",
    "DailyAt",
    "Decision",
    "Discard",
    "DuplicateTask",
    "Event",
    "Every",
    "Flow",
    "FlowStatus",
    "Inputs",
    "InvalidArguments",
    "InvalidOptions",
    "Limit",
    "MissingExtra",
    "Monthly",
    "NoStore",
    "Period",
    "PlanReport",
    "QueueFull",
    "Rate",
    "Reason",
    "Refused",
    "Retry",
    "RetryAfter",
    "Rota",
    "RotaError",
    "Run",
    "RunCancelled",
    "RunFailed",
    "RunHandle",
    "RunNotFound",
    "Schedule",
    "ScheduleNotFound",
    "ScheduleTaken",
    "SchemaTooNew",
    "Snooze",
    "State",
    "StatusReport",
    "Step",
    "StepStatus",
    "StoreCorrupt",
    "StoreError",
    "StoreUnavailable",
    "Task",
    "TaskError",
    "TickOutcome",
    "Trigger",
    "UnknownTask",
    "Unstorable",
    "UsageError",
    "UserKey",
    "Weekly",
    "status_dict",
]
