"""rota: work that runs on time, once, and visibly.

A name is loaded when code first uses it, so that `import rota` stays cheap.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rota.app.app import Rota
    from rota.app.leases import Fence
    from rota.app.runs import FoundRun, Runs
    from rota.app.status import Health, LoopStatus, Status, TaskStatus
    from rota.client.client import Client
    from rota.client.event_stream import EventStream
    from rota.client.handle import RunHandle
    from rota.client.operations import Operated
    from rota.client.portal import Portal
    from rota.client.submissions import Submission
    from rota.client.tick_outcomes import TickOutcome
    from rota.client.workers import Workers
    from rota.domain.activity import Activity, Breaker
    from rota.domain.decision import Decision, Reason
    from rota.domain.depends import CallArgument, Depends
    from rota.domain.ended import Ended
    from rota.domain.event import Event
    from rota.domain.failure import Failure
    from rota.domain.guards import Sliding
    from rota.domain.overrides import Overrides
    from rota.domain.period import Period
    from rota.domain.policy import Limit, Rate, Retry, Share
    from rota.domain.results import StatusReport, status_dict
    from rota.domain.run import Note, Run, State
    from rota.domain.schedule import Schedule
    from rota.domain.secrets import Secret
    from rota.domain.spec import TaskSpec
    from rota.domain.trial import GuardAnswer, Trial
    from rota.domain.triggers import At, AtStart, Cron, DailyAt, Every, Monthly, Trigger, Weekly
    from rota.domain.tuning import Retention
    from rota.domain.user_key import UserKey, UserParts
    from rota.engine.context import Context
    from rota.engine.gathered import FailedChild, FailedChildren, Results
    from rota.engine.middleware import CallNext
    from rota.engine.steps import Inputs
    from rota.errors import (
        Discard,
        DrainTimeout,
        DuplicateTask,
        HandlerVerdict,
        IdConflict,
        InvalidArguments,
        InvalidOptions,
        LeaseLost,
        MissingExtra,
        NoStore,
        NotRunning,
        NotSimulated,
        NotUndoable,
        QueueFull,
        Refused,
        RetryAfter,
        RotaError,
        RunCancelled,
        RunEnded,
        RunFailed,
        RunNotFound,
        ScheduleChanged,
        ScheduleNotFound,
        ScheduleTaken,
        SchemaTooNew,
        ServiceError,
        Snooze,
        StaleClaim,
        StoreCorrupt,
        StoreError,
        StoreUnavailable,
        TaskError,
        UnknownTask,
        Unstorable,
        UsageError,
        WorkerNotFound,
    )
    from rota.flow import Flow, FlowStatus, Step, StepStatus
    from rota.pull.values import PulledRun, PullNote, PullOutcome
    from rota.pull.worker import PullWorker
    from rota.schedules.plans import PlanOptions, PlanReport
    from rota.schedules.schedules import Schedules
    from rota.store import Backend, Count, Depth, RunQuery
    from rota.task.chain import Chain, ChainHandle
    from rota.task.fan_out import Each, Fanned
    from rota.task.options import TaskOptions
    from rota.task.task import Bound, Task, Using
    from rota.why import Fact, Why

# fmt: off
__all__ = [
    "Activity", "At", "AtStart", "Backend", "Bound", "Breaker", "CallArgument", "CallNext", "Chain", "ChainHandle",
    "Client",
    "Context", "Count", "Cron", "DailyAt", "Decision", "Depends", "Depth", "Discard", "DrainTimeout", "DuplicateTask",
    "Each", "Ended", "Event", "EventStream", "Every", "Fact", "FailedChild", "FailedChildren", "Failure", "Fanned",
    "Fence", "Flow", "FlowStatus", "FoundRun", "GuardAnswer", "HandlerVerdict", "Health", "IdConflict", "Inputs",
    "InvalidArguments", "InvalidOptions", "LeaseLost", "Limit", "LoopStatus", "MissingExtra", "Monthly", "NoStore",
    "NotRunning", "NotSimulated", "NotUndoable", "Note", "Operated", "Overrides", "Period", "PlanOptions", "PlanReport",
    "Portal", "PullNote", "PullOutcome", "PullWorker", "PulledRun", "QueueFull", "Rate", "Reason", "Refused", "Results",
    "Retention", "Retry", "RetryAfter", "Rota", "RotaError", "Run", "RunCancelled", "RunEnded", "RunFailed",
    "RunHandle", "RunNotFound", "RunQuery", "Runs", "Schedule", "ScheduleChanged", "ScheduleNotFound", "ScheduleTaken",
    "Schedules", "SchemaTooNew", "Secret", "ServiceError", "Share", "Sliding", "Snooze", "StaleClaim", "State",
    "Status", "StatusReport", "Step", "StepStatus", "StoreCorrupt", "StoreError", "StoreUnavailable", "Submission",
    "Task", "TaskError", "TaskOptions", "TaskSpec", "TaskStatus", "TickOutcome", "Trial", "Trigger", "UnknownTask",
    "Unstorable", "UsageError", "UserKey", "UserParts", "Using", "Weekly", "Why", "WorkerNotFound", "Workers",
    "status_dict"
]
# fmt: on

_MODULES = {
    "rota.task.options": "TaskOptions",
    "rota.schedules.schedules": "Schedules",
    "rota.client.portal": "Portal",
    "rota.client.client": "Client",
    "rota.client.workers": "Workers",
    "rota.app.app": "Rota",
    "rota.app.leases": "Fence",
    "rota.app.runs": "FoundRun Runs",
    "rota.app.status": "Health LoopStatus Status TaskStatus",
    "rota.client.event_stream": "EventStream",
    "rota.client.handle": "RunHandle",
    "rota.client.operations": "Operated",
    "rota.client.submissions": "Submission",
    "rota.client.tick_outcomes": "TickOutcome",
    "rota.domain.activity": "Activity Breaker",
    "rota.domain.decision": "Decision Reason",
    "rota.domain.depends": "CallArgument Depends",
    "rota.domain.event": "Event",
    "rota.domain.ended": "Ended",
    "rota.domain.failure": "Failure",
    "rota.domain.guards": "Sliding",
    "rota.domain.overrides": "Overrides",
    "rota.domain.period": "Period",
    "rota.domain.policy": "Limit Rate Retry Share",
    "rota.domain.results": "StatusReport status_dict",
    "rota.domain.run": "Note Run State",
    "rota.domain.schedule": "Schedule",
    "rota.domain.secrets": "Secret",
    "rota.domain.spec": "TaskSpec",
    "rota.domain.trial": "GuardAnswer Trial",
    "rota.domain.triggers": "At AtStart Cron DailyAt Every Monthly Trigger Weekly",
    "rota.domain.tuning": "Retention",
    "rota.domain.user_key": "UserKey UserParts",
    "rota.engine.context": "Context",
    "rota.engine.gathered": "FailedChild FailedChildren Results",
    "rota.engine.middleware": "CallNext",
    "rota.engine.steps": "Inputs",
    "rota.errors": (
        "Discard DrainTimeout DuplicateTask HandlerVerdict IdConflict InvalidArguments InvalidOptions LeaseLost "
        "MissingExtra NoStore NotRunning NotSimulated NotUndoable QueueFull Refused RetryAfter RotaError "
        "RunCancelled RunEnded RunFailed RunNotFound ScheduleChanged ScheduleNotFound ScheduleTaken SchemaTooNew "
        "ServiceError Snooze StaleClaim StoreCorrupt StoreError StoreUnavailable TaskError UnknownTask Unstorable "
        "UsageError WorkerNotFound"
    ),
    "rota.flow": "Flow FlowStatus Step StepStatus",
    "rota.pull.values": "PullNote PullOutcome PulledRun",
    "rota.pull.worker": "PullWorker",
    "rota.schedules.plans": "PlanOptions PlanReport",
    "rota.store": "Backend Count Depth RunQuery",
    "rota.task.chain": "Chain ChainHandle",
    "rota.task.fan_out": "Each Fanned",
    "rota.task.task": "Bound Task Using",
    "rota.why": "Fact Why",
}
"""The public names by the module that defines them; `__all__` and the imports above repeat the names for type checkers
and editors, and tests/surfaces/test_public_names.py compares the three lists."""
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names.split()}


if not TYPE_CHECKING:  # a type checker that sees `__getattr__` accepts every name, also a misspelt one

    def __getattr__(name: str) -> object:
        if name not in _MODULE_OF:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = globals()[name] = getattr(import_module(_MODULE_OF[name]), name)
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
