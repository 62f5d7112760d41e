"""Handler: what the engine must know about a task to call it."""

from collections.abc import Callable
from typing import Any, Literal

from msgspec import Struct

from rota.domain.arguments import Signature
from rota.domain.depends import Dependencies
from rota.domain.policy import Retry, TraceMode
from rota.domain.results import FailOn
from rota.engine.middleware import Middleware

ExecutorName = Literal["loop", "thread", "process"]


class Handler(Struct, frozen=True, kw_only=True):
    name: str
    fn: Callable[..., Any]
    signature: Signature
    executor: ExecutorName
    takes_context: bool = False
    yields: bool = False
    """The function yields items, which become a list or, one by one, the children of a fan."""
    retry: Retry = Retry()
    middleware: tuple[Middleware, ...] = ()
    """What is called around the function, the first outermost."""
    dependencies: Dependencies | None = None
    """What the function needs beside its arguments."""
    logs: bool = False
    """The end of what the function logs is stored with the attempt."""
    trace: TraceMode = "link"
    """Whether a call is a trace of its own, with a link to its submit, or a part of the trace of the submit."""
    fail_on: FailOn | None = None
    """Judges the result, unless the flow of the run does."""
