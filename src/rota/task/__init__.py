"""A task, what may be said of it, and what can be made of it: calls, runs, chains."""

from rota.task.chain import Chain, ChainHandle, bind_step
from rota.task.ids import id_source, new_id
from rota.task.options import TaskOptions, takes_context, trigger_of
from rota.task.task import WAIT, Bound, Task

__all__ = [
    "WAIT",
    "Bound",
    "Chain",
    "ChainHandle",
    "Task",
    "TaskOptions",
    "bind_step",
    "id_source",
    "new_id",
    "takes_context",
    "trigger_of",
]
