"""rota: work that runs on time, once, and visibly."""

from rota.app import Rota
from rota.domain.decision import Decision, Reason
from rota.domain.policy import Limit, Rate, Retry
from rota.domain.run import Run, State
from rota.engine.context import Context
from rota.engine.hooks import Event
from rota.errors import (
    Discard,
    DuplicateTask,
    InvalidArguments,
    InvalidOptions,
    MissingExtra,
    QueueFull,
    Refused,
    RetryAfter,
    RotaError,
    RunCancelled,
    RunFailed,
    RunNotFound,
    SchemaTooNew,
    Snooze,
    StoreCorrupt,
    StoreError,
    StoreUnavailable,
    TaskError,
    UnknownTask,
    UsageError,
)
from rota.handle import RunHandle
from rota.task import Task

__all__ = [
    "Context",
    "Decision",
    "Discard",
    "DuplicateTask",
    "Event",
    "InvalidArguments",
    "InvalidOptions",
    "Limit",
    "MissingExtra",
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
    "SchemaTooNew",
    "Snooze",
    "State",
    "StoreCorrupt",
    "StoreError",
    "StoreUnavailable",
    "Task",
    "TaskError",
    "UnknownTask",
    "UsageError",
]
