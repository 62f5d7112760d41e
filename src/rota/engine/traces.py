"""Traces: spans of OpenTelemetry for submits, ticks and calls. The only file that knows OpenTelemetry.

A program that has set up a tracer provider gets spans; in every other program this file imports nothing. The context of
a submit travels in the headers of its run (`traceparent`, `tracestate`), through every store and every process. A call
begins a trace of its own, with a link to its submit, because a run may start days later and one submit may make a
thousand runs; `trace="parent"` on a task makes the submit the parent.
"""

import sys
from collections.abc import Generator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import UTC, datetime
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
    from opentelemetry.trace import Span, Tracer

API = "opentelemetry.trace"
OWN = "rota."
"""How the names of rota's own tasks begin; they have no spans."""
NAMES = ("traceparent", "tracestate")
_known: "tuple[object, Tracer] | None" = None


def tracer() -> "Tracer | None":
    """Return the tracer of this program; None unless it has set up a tracer provider."""
    global _known
    if API not in sys.modules:
        return None
    from opentelemetry import trace

    provider = trace.get_tracer_provider()
    if _known is None or _known[0] is not provider:
        if isinstance(provider, trace.ProxyTracerProvider | trace.NoOpTracerProvider):
            return None
        _known = provider, trace.get_tracer("rota", version("rota"), provider)
    return _known[1]


def trace_id() -> str | None:
    """Return the id of the trace that this code runs in, for log lines."""
    if API not in sys.modules:
        return None
    from opentelemetry import trace

    found = trace.get_current_span().get_span_context()
    return f"{found.trace_id:032x}" if found.is_valid else None


# -- submits ----------------------------------------------------------------------------------------------------------


def sending(runs: Sequence[NewRun]) -> AbstractContextManager[Sequence[NewRun]]:
    """A span `send TASK` around a put. The block gets the runs with the context of the span in their headers."""
    found = tracer() if runs else None
    if found is None or runs[0].task.startswith(OWN):
        return nullcontext(runs)
    return _sending(found, runs)


@contextmanager
def _sending(found: "Tracer", runs: Sequence[NewRun]) -> "Generator[Sequence[NewRun]]":
    from opentelemetry import trace

    first = runs[0]
    attributes = _messaging(first.task, "send", first.id if len(runs) == 1 else None)
    if len(runs) > 1:
        attributes["messaging.batch.message_count"] = len(runs)
    here = trace.get_current_span().get_span_context()
    parent = None if here.is_valid else _extracted(codec.decode_or_blank(first.body).headers or {})
    kind = trace.SpanKind.PRODUCER
    with found.start_as_current_span(f"send {first.task}", parent, kind, attributes):
        carrier = _injected()
        yield [_carrying(run, carrier) for run in runs]


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
    found: dict[str, Any] = {
        "messaging.system": "rota",
        "messaging.operation.name": operation,
        "messaging.operation.type": operation,
        "messaging.destination.name": task,
    }
    return found if run is None else found | {"messaging.message.id": run}


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
    found = tracer()
    if found is None or run.task.startswith(OWN):
        return None
    from opentelemetry import context, trace

    made = _extracted(run.headers)
    before = [_extracted({"traceparent": attempt.trace}) for attempt in run.attempts[-1:] if attempt.trace]
    spans = [trace.get_current_span(each).get_span_context() for each in (made, *before)]
    links = [trace.Link(each) for each in spans if each.is_valid]
    attributes = _messaging(run.task, "process", run.id) | {
        "rota.fence": run.fence,
        "rota.attempt": run.failures + run.losses + 1,
        "rota.wait": max(0.0, (run.claimed_at or run.due_at) - run.due_at),
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


def processed(span: "Span | None", settlement: Settlement) -> None:
    """End the span of a call as its settlement says. Secrets are out of the settlement already."""
    if span is None:
        return
    from opentelemetry.trace import Status, StatusCode

    error = settlement.error
    span.set_attribute("rota.outcome", settlement.outcome)
    if error is not None and settlement.outcome != "skipped":
        span.set_attribute("error.type", error.type)
        span.set_status(Status(StatusCode.ERROR, error.message))
        fields = {"exception.type": error.type, "exception.message": error.message}
        span.add_event("exception", fields | ({"exception.stacktrace": error.traceback} if error.traceback else {}))
    span.end()


def _iso(instant: float | None) -> str:
    return "" if instant is None else datetime.fromtimestamp(instant, UTC).isoformat()
