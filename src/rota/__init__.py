"""rota: work that runs on time, once, and visibly."""

from rota.app import Rota
from rota.domain.decision import Decision, Reason
from rota.domain.policy import Retry
from rota.domain.run import Run, State
from rota.engine.context import Context
from rota.errors import (
    DuplicateTask,
    InvalidArguments,
    InvalidOptions,
    MissingExtra,
    QueueFull,
    Refused,
    RotaError,
    RunCancelled,
    RunFailed,
    RunNotFound,
    SchemaTooNew,
    StoreCorrupt,
    StoreError,
    StoreUnavailable,
    UnknownTask,
    UsageError,
)
from rota.handle import RunHandle
from rota.task import Task

__all__ = [
    "Context",
    "Decision",
    "DuplicateTask",
    "InvalidArguments",
    "InvalidOptions",
    "MissingExtra",
    "QueueFull",
    "Reason",
    "Refused",
    "Retry",
    "Rota",
    "RotaError",
    "Run",
    "RunCancelled",
    "RunFailed",
    "RunHandle",
    "RunNotFound",
    "SchemaTooNew",
    "State",
    "StoreCorrupt",
    "StoreError",
    "StoreUnavailable",
    "Task",
    "UnknownTask",
    "UsageError",
]
