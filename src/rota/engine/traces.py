"""Traces: spans and metrics of OpenTelemetry for submits, ticks and calls. The only file that knows OpenTelemetry.

A program that has set up a tracer provider gets spans, and one that has set up a meter provider gets metrics of its own
process; in every other program this file imports nothing. The context of
a submit travels in the headers of its run (`traceparent`, `tracestate`), through every store and every process. A call
begins a trace of its own, with a link to its submit, because a run may start days later and one submit may make a
thousand runs; `trace="parent"` on a task makes the submit the parent.
"""

import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import UTC, datetime
from functools import cache
from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from rota.domain import codec
from rota.domain.decision import Decision
from rota.domain.headers import check_headers
from rota.domain.run import NewRun, Run
from rota.domain.schedule import Schedule, Tick
from rota.domain.settlement import Settlement

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.metrics import MeterProvider
    from opentelemetry.trace import Span, Tracer

API, METERS = "opentelemetry.trace", "opentelemetry.metrics"
OWN = "rota."
"""How the names of rota's own tasks begin; they have no spans."""
NAMES = ("traceparent", "tracestate")
_known: "tuple[object, Tracer] | None" = None
_measured: "tuple[object, Meters] | None" = None
_apis: dict[str, Any] = {}
"""The two modules of the API that ask for a provider. An `import` in each call took as long as the question."""


class Meters:
    """The instruments, by the conventions of OpenTelemetry for messaging. Counters are read when somebody collects
    them, because to add to one costs as much as a tenth of a short run."""

    def __init__(self, provider: "MeterProvider") -> None:
        from opentelemetry.metrics import CallbackOptions, Observation

        def observed(counts: "Counter[tuple[str, str, str]]") -> "Callable[[CallbackOptions], list[Observation]]":
            return lambda _: [Observation(count, _attributes(*name)) for name, count in list(counts.items())]

        meter = provider.get_meter("rota", version("rota"))
        self.sent: Counter[tuple[str, str, str]] = Counter()
        self.consumed: Counter[tuple[str, str, str]] = Counter()
        for name, counts, text in (
            ("messaging.client.sent.messages", self.sent, "Runs that were submitted."),
            ("messaging.client.consumed.messages", self.consumed, "Calls that were started."),
        ):
            meter.create_observable_counter(name, [observed(counts)], "{message}", text)
        self.duration = meter.create_histogram("messaging.process.duration", "s", "How long calls took.")
        self.wait = meter.create_histogram("rota.run.wait", "s", "How long runs waited from due to start.")


@cache
def _attributes(task: str, operation: str, error: str) -> dict[str, str]:
    """The attributes of metrics: names of tasks and of errors, and nothing else that has many values."""
    return _about(task, operation) | ({"error.type": error} if error else {})


def _api(name: str) -> Any:
    """Return the module `name` if this program has imported it; else None."""
    found = _apis.get(name)
    if found is None and name in sys.modules:
        found = _apis[name] = import_module(name)  # it waits for another thread that is about to import it
    return found


def tracer() -> "Tracer | None":
    """Return the tracer of this program; None unless it has set up a tracer provider."""
    global _known
    trace = _api(API)
    if trace is None:
        return None
    provider = trace.get_tracer_provider()
    if _known is None or _known[0] is not provider:
        if isinstance(provider, (trace.ProxyTracerProvider, trace.NoOpTracerProvider)):
            return None
        _known = provider, trace.get_tracer("rota", version("rota"), provider)
    return _known[1]


def meters() -> Meters | None:
    """Return the instruments of this program; None unless it has set up a meter provider."""
    global _measured
    metrics = _api(METERS)
    if metrics is None:
        return None
    provider = metrics.get_meter_provider()
    if _measured is None or _measured[0] is not provider:
        if type(provider).__module__.startswith(METERS):  # the stand-ins of the API, until a provider is set
            return None
        _measured = provider, Meters(provider)
    return _measured[1]


def observed() -> bool:
    """Return whether this program traces or measures. Many have the API of OpenTelemetry loaded by another library and
    no provider."""
    return tracer() is not None or meters() is not None


def trace_id() -> str | None:
    """Return the id of the trace that this code runs in, for log lines."""
    if API not in sys.modules:
        return None
    from opentelemetry import trace

    found = trace.get_current_span().get_span_context()
    return f"{found.trace_id:032x}" if found.is_valid else None


# -- submits ----------------------------------------------------------------------------------------------------------


def sending(runs: Sequence[NewRun], create: bool = False) -> AbstractContextManager[Sequence[NewRun]]:
    """A span `send TASK` around a put. The block gets the runs with the context of the span in their headers. With
    `create`, each of several runs has a span `create TASK` of its own below it, and carries the context of that."""
    if not runs or runs[0].task.startswith(OWN):
        return nullcontext(runs)
    found, measured = tracer(), meters()
    if found is None and measured is None:
        return nullcontext(runs)
    return _sending(found, measured, runs, create and len(runs) > 1)


@contextmanager
def _sending(
    found: "Tracer | None", measured: Meters | None, runs: Sequence[NewRun], create: bool
) -> "Generator[Sequence[NewRun]]":
    error: BaseException | None = None
    try:
        with nullcontext(runs) if found is None else _sending_span(found, runs, create) as carrying:
            yield carrying
    except BaseException as raised:
        error = raised
        raise
    finally:
        if measured is not None:
            failed = "" if error is None else type(error).__qualname__
            for run in runs:
                measured.sent[run.task, "send", failed] += 1


@contextmanager
def _sending_span(found: "Tracer", runs: Sequence[NewRun], create: bool) -> "Generator[Sequence[NewRun]]":
    from opentelemetry import trace

    first = runs[0]
    attributes = _messaging(first.task, "send", first.id if len(runs) == 1 else None)
    if len(runs) > 1:
        attributes["messaging.batch.message_count"] = len(runs)
    here = trace.get_current_span().get_span_context()
    parent = None if here.is_valid else _extracted(codec.decode_or_blank(first.body).headers or {})
    kind = trace.SpanKind.CLIENT if create else trace.SpanKind.PRODUCER  # the spans `create` are the producers then
    with found.start_as_current_span(f"send {first.task}", parent, kind, attributes):
        if create:
            yield [_created(found, run) for run in runs]
        else:
            carrier = _injected()
            yield [_carrying(run, carrier) for run in runs]


def _created(found: "Tracer", run: NewRun) -> NewRun:
    """Make the span `create TASK` of one run among many; return the run with its context."""
    from opentelemetry import trace

    attributes = _messaging(run.task, "create", run.id)
    with found.start_as_current_span(f"create {run.task}", None, trace.SpanKind.PRODUCER, attributes):
        return _carrying(run, _injected())


def decided(decisions: Sequence[Decision]) -> None:
    """Say in the span of a put what the store has answered."""
    if decisions and tracer() is not None:
        from opentelemetry import trace

        trace.get_current_span().set_attribute("rota.reason", str(decisions[0].reason))


def _carrying(run: NewRun, carrier: Mapping[str, str]) -> NewRun:
    headers = {**(codec.decode_or_blank(run.body).headers or {}), **carrier}
    try:
        return replace(run, body=codec.with_headers(run.body, check_headers(headers)))
    except ValueError:  # the run has so many headers of its own that there is no room
        return run


def _injected() -> dict[str, str]:
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    carrier: dict[str, str] = {}
    TraceContextTextMapPropagator().inject(carrier)
    return carrier


def _extracted(headers: Mapping[str, str]) -> "Context":
    """Return the context that headers carry; without one, or with a broken one, an empty context."""
    from opentelemetry.context import Context
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    carrier = {name: headers[name] for name in NAMES if name in headers}
    return TraceContextTextMapPropagator().extract(carrier, Context())


def _messaging(task: str, operation: str, run: str | None) -> dict[str, Any]:
    found: dict[str, Any] = _about(task, operation) | {"messaging.operation.type": operation}
    return found if run is None else found | {"messaging.message.id": run}


def _about(task: str, operation: str) -> dict[str, str]:
    return {
        "messaging.system": "rota",
        "messaging.operation.name": operation,
        "messaging.destination.name": task,
    }


# -- ticks ------------------------------------------------------------------------------------------------------------


def ticking(schedule: Schedule, tick: Tick) -> "tuple[Tick, Span | None]":
    """Begin a span `tick SCHEDULE`, the root of what the tick makes; return the tick whose runs carry it."""
    found = tracer() if tick.runs else None
    if found is None or schedule.task.startswith(OWN):
        return tick, None
    from opentelemetry import trace
    from opentelemetry.context import Context

    attributes = {"rota.schedule": schedule.id, "rota.nominal": _iso(tick.nominals[0] if tick.nominals else None)}
    span = found.start_span(f"tick {schedule.id}", Context(), trace.SpanKind.INTERNAL, attributes)
    with trace.use_span(span):
        carrier = _injected()
    return replace(tick, runs=tuple(_carrying(run, carrier) for run in tick.runs)), span


def ticked(span: "Span | None", applied: bool, decisions: Sequence[Decision]) -> None:
    """End the span of a tick. `applied` is False if another worker has fired the tick."""
    if span is None:
        return
    span.set_attribute("rota.applied", applied)
    if decisions:
        span.set_attribute("rota.reason", str(decisions[0].reason))
    span.end()


# -- calls ------------------------------------------------------------------------------------------------------------


def processing(run: Run, parent: bool) -> "Span | None":
    """Begin the span `process TASK` of one call, as the current span of this asyncio task and what it calls."""
    if run.task.startswith(OWN):
        return None
    found, waited = tracer(), max(0.0, (run.claimed_at or run.due_at) - run.due_at)
    if (measured := meters()) is not None:
        measured.consumed[run.task, "process", ""] += 1
        measured.wait.record(waited, _attributes(run.task, "process", ""))
    if found is None:
        return None
    from opentelemetry import context, trace

    made = _extracted(run.headers)
    before = [_extracted({"traceparent": attempt.trace}) for attempt in run.attempts[-1:] if attempt.trace]
    spans = [trace.get_current_span(each).get_span_context() for each in (made, *before)]
    links = [trace.Link(each) for each in spans if each.is_valid]
    attributes = _messaging(run.task, "process", run.id) | {
        "rota.fence": run.fence,
        "rota.attempt": run.failures + run.losses + 1,
        "rota.wait": waited,
    }
    if run.member is not None:
        attributes["messaging.message.conversation_id"] = run.member.group
    if run.origin.kind == "schedule" and run.origin.of is not None:
        attributes |= {"rota.schedule": run.origin.of, "rota.nominal": _iso(run.origin.nominal)}
    within = made if parent else context.Context()
    span = found.start_span(f"process {run.task}", within, trace.SpanKind.CONSUMER, attributes, links)
    context.attach(trace.set_span_in_context(span))
    return span


def traceparent(span: "Span | None") -> str:
    """Return the place of a span in its trace, as it is stored with the attempt."""
    if span is None:
        return ""
    found = span.get_span_context()
    return f"00-{found.trace_id:032x}-{found.span_id:016x}-{found.trace_flags:02x}"


def processed(span: "Span | None", task: str, settlement: Settlement) -> None:
    """End the span of a call as its settlement says. Secrets are out of the settlement already."""
    error = settlement.error
    if not task.startswith(OWN) and (measured := meters()) is not None:
        failed = "" if error is None or settlement.outcome == "skipped" else error.type
        measured.duration.record(settlement.seconds or 0.0, _attributes(task, "process", failed))
    if span is None:
        return
    from opentelemetry.trace import Status, StatusCode

    span.set_attribute("rota.outcome", settlement.outcome)
    if error is not None and settlement.outcome != "skipped":
        span.set_attribute("error.type", error.type)
        span.set_status(Status(StatusCode.ERROR, error.message))
        fields = {"exception.type": error.type, "exception.message": error.message}
        span.add_event("exception", fields | ({"exception.stacktrace": error.traceback} if error.traceback else {}))
    span.end()


# -- the store --------------------------------------------------------------------------------------------------------


@contextmanager
def receiving() -> "Generator[list[Run]]":
    """A span `receive` around a claim, if it brings runs or fails: most claims of an idle worker do neither. The block
    adds the runs to the list that it gets."""
    runs: list[Run] = []
    found, began = tracer(), time.time_ns()
    error: BaseException | None = None
    try:
        yield runs
    except Exception as raised:
        error = raised
        raise
    finally:
        if found is not None and (runs or error is not None):
            links = [_extracted(run.headers) for run in runs]
            _of_store(found, "receive", sorted({run.task for run in runs}), len(runs), links, began, error)


@contextmanager
def settling(endings: "Iterable[tuple[str, Settlement]]") -> "Generator[None]":
    """A span `settle TASK` around a settle, for each task among `endings`: its name and the settlement."""
    found, began = tracer(), time.time_ns()
    if found is None:
        yield
        return
    by_task: defaultdict[str, list[Context]] = defaultdict(list)
    for task, settlement in endings:
        if not task.startswith(OWN):
            by_task[task].append(_extracted({"traceparent": settlement.trace} if settlement.trace else {}))
    error: BaseException | None = None
    try:
        yield
    except Exception as raised:
        error = raised
        raise
    finally:
        for task, calls in by_task.items():
            _of_store(found, f"settle {task}", [task], len(calls), calls, began, error)


def _of_store(
    found: "Tracer",
    name: str,
    tasks: Sequence[str],
    count: int,
    others: "Sequence[Context]",
    began: int,
    error: BaseException | None,
) -> None:
    """Make the span of a verb of the store that began at `began`. One that is about a single call is a part of its
    trace; one that is about several has links to `others`."""
    from opentelemetry import trace
    from opentelemetry.context import Context

    operation = name.partition(" ")[0]
    attributes: dict[str, Any] = {
        "messaging.system": "rota",
        "messaging.operation.name": operation,
        "messaging.operation.type": operation,
        "messaging.batch.message_count": count,
    }
    if len(tasks) == 1:
        attributes["messaging.destination.name"] = tasks[0]
    parent = others[0] if len(others) == 1 and operation == "settle" else Context()
    contexts = [trace.get_current_span(each).get_span_context() for each in others]
    links = [] if parent else [trace.Link(each) for each in contexts if each.is_valid]
    span = found.start_span(name, parent, trace.SpanKind.CLIENT, attributes, links, start_time=began)
    if error is not None:
        span.set_attribute("error.type", type(error).__qualname__)
        span.set_status(trace.Status(trace.StatusCode.ERROR, type(error).__qualname__))
    span.end()


def _iso(instant: float | None) -> str:
    return "" if instant is None else datetime.fromtimestamp(instant, UTC).isoformat()
