"""Spans of OpenTelemetry, in a file: where a real app sends them to its collector, this one writes a line for each."""

import json
import os
from pathlib import Path

from opentelemetry import trace
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import ConsoleSpanExporter, SimpleSpanProcessor


def set_up() -> None:
    """Write spans into the file that TRACES names. FastAPI and rota find the tracer provider by themselves."""
    path = os.environ.get("TRACES")
    if path is None:
        return
    provider = TracerProvider(resource=Resource({"service.name": "agent", "process.pid": os.getpid()}))
    lines = Path(path).open("a", encoding="utf-8", buffering=1)  # noqa: SIM115 (open for as long as the process lives)
    provider.add_span_processor(SimpleSpanProcessor(ConsoleSpanExporter(out=lines, formatter=_line)))
    trace.set_tracer_provider(provider)


def _line(span: ReadableSpan) -> str:
    return json.dumps(json.loads(span.to_json(indent=None))) + "\n"
