"""Tasks: what users call on a task, and what rota's other packages read of it (`definition_of`, `call_of`)."""

from rota.task.call import Call, runs_of
from rota.task.chain import Chain, ChainHandle, bind_step
from rota.task.definition import Definition, call_of, definition_of, takes_context, trigger_of
from rota.task.ids import id_source, new_id
from rota.task.options import TaskOptions
from rota.task.submitter import WAIT, Submitter
from rota.task.task import Bound, Task, Using, handles_of

__all__ = [
    "WAIT",
    "Bound",
    "Call",
    "Chain",
    "ChainHandle",
    "Definition",
    "Submitter",
    "Task",
    "TaskOptions",
    "Using",
    "bind_step",
    "call_of",
    "definition_of",
    "handles_of",
    "id_source",
    "new_id",
    "runs_of",
    "takes_context",
    "trigger_of",
]
