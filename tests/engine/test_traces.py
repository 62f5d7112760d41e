"""Traces: spans of submits, ticks and calls, with the context in the headers of the run."""

import json
import logging
import subprocess
import sys
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated

import pytest
from opentelemetry import metrics, trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader, NumberDataPoint
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind

from rota import Every, Retry, Rota, Secret, State
from rota.domain.settlement import Finish, Settlement
from rota.engine import traces
from rota.engine.logs import JsonLines
from rota.errors import RotaError
from rota.testing import simulate
from tests.faults.conftest import store_url as store_url
from tests.web.conftest import Caller
from tests.web.conftest import caller as caller

SUCCEEDED = Finish(State.SUCCEEDED, None)
PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> Iterator[InMemorySpanExporter]:
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(trace, "get_tracer_provider", lambda: provider)
    yield exporter
    provider.shutdown()


@pytest.fixture
def app() -> Rota:
    app = Rota("memory://")

    @app.task(retry=Retry(1, delay=0))
    def shaky(card: Annotated[str, Secret]) -> None:
        raise ValueError(f"no {card}")

    @app.task
    async def outer() -> str:
        return (await inner.submit()).id

    @app.task(trace="parent")
    async def inner() -> str:
        return f"{trace.get_current_span().get_span_context().trace_id:032x}"

    return app


def named(spans: InMemorySpanExporter, name: str) -> list[ReadableSpan]:
    return [span for span in spans.get_finished_spans() if span.name == name]


def ids(found: Sequence[ReadableSpan]) -> list[tuple[int, int]]:
    return [(span.context.trace_id, span.context.span_id) for span in found if span.context is not None]


def links(span: ReadableSpan) -> list[tuple[int, int]]:
    return [(link.context.trace_id, link.context.span_id) for link in span.links]


async def test_each_attempt_is_a_trace_with_links_to_its_submit_and_to_the_attempt_before(
    app: Rota, spans: InMemorySpanExporter
) -> None:
    async with app:
        run = await app.tasks["shaky"].submit("card-4711")
        await app.client().ended(run.id)
    ended = await run.refresh()
    (send,), (one, two) = named(spans, "send shaky"), named(spans, "process shaky")
    assert (send.kind, one.kind, one.parent, two.parent) == (SpanKind.PRODUCER, SpanKind.CONSUMER, None, None)
    assert links(one) == ids([send])
    assert links(two) == ids([send, one])
    assert ended.headers["traceparent"].split("-")[1] == f"{ids([send])[0][0]:032x}"
    assert [attempt.trace.split("-")[1] for attempt in ended.attempts] == [
        f"{each:032x}" for each, _ in ids([one, two])
    ]
    given, sent = dict(two.attributes or {}), dict(send.attributes or {})
    assert (sent["messaging.message.id"], sent["rota.reason"]) == (run.id, "accepted")
    assert (given["messaging.system"], given["messaging.destination.name"]) == ("rota", "shaky")
    assert (given["rota.attempt"], given["rota.fence"], given["error.type"]) == (2, 2, "ValueError")
    assert "card-4711" not in "".join(span.to_json() for span in spans.get_finished_spans()), "no secret in a span"


async def test_what_a_handler_submits_belongs_to_its_trace(app: Rota, spans: InMemorySpanExporter) -> None:
    async with app:
        inner = await (await app.tasks["outer"].submit()).result()
        within = await app.handle(inner).result()
    (outer,), (send,), (process,) = (named(spans, name) for name in ("process outer", "send inner", "process inner"))
    assert outer.context is not None
    assert send.parent is not None
    assert (send.parent.span_id, within) == (outer.context.span_id, f"{outer.context.trace_id:032x}")
    assert process.parent is not None
    assert process.parent.span_id == ids([send])[0][1], 'trace="parent"'


async def test_a_request_over_http_brings_its_context(
    app: Rota, caller: Caller, spans: InMemorySpanExporter, monkeypatch: pytest.MonkeyPatch
) -> None:
    http, body = caller(), {"task": "inner"}
    made = (await http.post("/api/v1/runs", json=body, headers={"traceparent": PARENT})).json()["run"]
    (send,) = named(spans, "send inner")
    assert send.parent is not None
    assert f"{send.parent.trace_id:032x}" in PARENT
    assert (await app.client().run(made)).headers["traceparent"].split("-")[1] in PARENT
    monkeypatch.setattr(traces, "tracer", lambda: None)  # a service without OpenTelemetry passes it on
    made = (await http.post("/api/v1/runs", json=body, headers={"traceparent": PARENT})).json()["run"]
    assert (await app.client().run(made)).headers["traceparent"] == PARENT
    made = (await http.post("/api/v1/runs", json=body, headers={"traceparent": "nonsense"})).json()["run"]
    assert (await app.client().run(made)).headers == {}


def test_a_tick_is_the_root_of_what_it_makes(spans: InMemorySpanExporter) -> None:
    app = Rota("memory://")
    app.task(name="nightly", schedule=Every(60))(_nothing)

    start = datetime(2026, 3, 1, tzinfo=UTC)
    simulate(app, start, start + timedelta(seconds=130))
    ticks, calls = named(spans, "tick nightly"), named(spans, "process nightly")
    assert calls
    assert [links(call) for call in calls] == [[each] for each in ids(ticks)[: len(calls)]]
    assert dict(ticks[0].attributes or {})["rota.schedule"] == "nightly"


async def _nothing() -> None:
    return


def test_many_runs_have_one_span_and_a_broken_context_harms_nobody(app: Rota, spans: InMemorySpanExporter) -> None:
    bound = [app.tasks["inner"].bind() for _ in range(3)]
    handles = app.portal.call(lambda: app.submit_many(bound))
    (send,) = named(spans, "send inner")
    assert dict(send.attributes or {})["messaging.batch.message_count"] == len(handles)
    odd = app.tasks["inner"].using(headers={"traceparent": "nonsense"}).submit_sync()
    assert odd.refresh_sync().headers["traceparent"] != "nonsense"


async def test_with_trace_create_each_run_of_many_has_a_span(spans: InMemorySpanExporter) -> None:
    app = Rota("memory://", trace_create=True)
    inner = app.task(name="inner")(_nothing)
    async with app:
        for handle in await app.submit_many([inner.bind() for _ in range(3)]):
            await handle.result()
        await (await inner.submit()).result()
    (many, one), creates, calls = (named(spans, f"{name} inner") for name in ("send", "create", "process"))
    assert (many.kind, one.kind) == (SpanKind.CLIENT, SpanKind.PRODUCER), "a lone run needs no second span"
    assert {each.kind for each in creates} == {SpanKind.PRODUCER}
    assert many.context is not None
    assert [each.parent and each.parent.span_id for each in creates] == [many.context.span_id] * 3
    linked = {link for call in calls for link in links(call)}
    assert linked == {*ids(creates), *ids([one])}
    assert len({str(dict(each.attributes or {})["messaging.message.id"]) for each in creates}) == 3


def test_log_lines_have_the_trace_and_the_fence(spans: InMemorySpanExporter) -> None:
    found = traces.tracer()
    assert found is not None
    record = logging.LogRecord("shop", logging.INFO, __file__, 1, "hello", (), None)
    record.rota_run, record.rota_task, record.rota_fence = "r", "t", 3
    with found.start_as_current_span("mine") as span:
        line = json.loads(JsonLines().format(record))
    assert (line["run"], line["fence"], line["trace"]) == ("r", 3, f"{span.get_span_context().trace_id:032x}")


def test_a_program_without_opentelemetry_imports_none_of_it() -> None:
    code = (
        "import sys; from rota import Rota; app = Rota('memory://'); job = app.task(name='job')(lambda: None)\n"
        "import asyncio\n"
        "async def main():\n"
        "    async with app: await (await job.submit()).result()\n"
        "asyncio.run(main())\n"
        "print([name for name in sys.modules if name.startswith('opentelemetry')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("store_url", ["sqlite", "valkey-9", "postgres-18"], indirect=True)
async def test_the_context_of_a_submit_travels_through_every_store(store_url: str, spans: InMemorySpanExporter) -> None:
    app = Rota(store_url)
    linked = app.task(name="linked")(_nothing)
    inside = app.task(name="inside", trace="parent")(_nothing)
    async with app:
        for task in (linked, inside):
            await (await task.submit()).result()
    (send,), (process,) = named(spans, "send linked"), named(spans, "process linked")
    assert (links(process), process.parent) == (ids([send]), None)
    (send,), (process,) = named(spans, "send inside"), named(spans, "process inside")
    assert process.parent is not None
    assert [(process.parent.trace_id, process.parent.span_id)] == ids([send])


@pytest.fixture
def metered(monkeypatch: pytest.MonkeyPatch) -> Iterator[InMemoryMetricReader]:
    reader = InMemoryMetricReader()
    provider = MeterProvider([reader])
    monkeypatch.setattr(metrics, "get_meter_provider", lambda: provider)
    yield reader
    provider.shutdown()


def measured(reader: InMemoryMetricReader) -> dict[tuple[str, str, str], float]:
    """The count of each metric, task and error."""
    data = reader.get_metrics_data()
    found: dict[tuple[str, str, str], float] = {}
    for metric in data.resource_metrics[0].scope_metrics[0].metrics if data else ():
        for point in metric.data.data_points:
            given = dict(point.attributes or {})
            assert given.pop("messaging.system") == "rota"
            assert set(given) <= {"messaging.operation.name", "messaging.destination.name", "error.type"}
            name = metric.name, str(given["messaging.destination.name"]), str(given.get("error.type", ""))
            found[name] = point.value if isinstance(point, NumberDataPoint) else point.count
    return found


async def test_a_program_with_a_meter_provider_gets_metrics_of_its_own_process(
    app: Rota, metered: InMemoryMetricReader
) -> None:
    async with app:
        run = await app.tasks["shaky"].submit("card-4711")
        await app.client().ended(run.id)
        await (await app.tasks["inner"].submit()).result()
        await app.submit_many([app.tasks["inner"].bind(), app.tasks["inner"].bind()])
    seen = measured(metered)
    assert seen["messaging.client.sent.messages", "shaky", ""] == 1
    assert seen["messaging.client.sent.messages", "inner", ""] == 3
    assert seen["messaging.client.consumed.messages", "shaky", ""] == 2
    assert seen["messaging.process.duration", "shaky", "ValueError"] == 2
    assert seen["rota.run.wait", "shaky", ""] == 2


async def test_metrics_need_no_spans_and_headers_stay_empty(app: Rota, metered: InMemoryMetricReader) -> None:
    run = await app.tasks["inner"].submit()
    assert "traceparent" not in (await run.refresh()).headers
    assert measured(metered) == {("messaging.client.sent.messages", "inner", ""): 1}


async def test_a_submit_that_fails_is_counted_with_its_error(
    app: Rota, metered: InMemoryMetricReader, tmp_path: Path
) -> None:
    gone = Rota(f"sqlite:///{tmp_path}/none/of/this.db")
    gone.client().patience = 0.1
    (tmp_path / "none").write_text("")
    with pytest.raises(RotaError):
        await gone.task(name="lone")(_nothing).submit()
    ((name, task, error),) = measured(metered)
    assert (name, task) == ("messaging.client.sent.messages", "lone")
    assert error


def stored(spans: InMemorySpanExporter, kind: str) -> list[ReadableSpan]:
    return [span for span in spans.get_finished_spans() if span.name.partition(" ")[0] == kind]


async def test_with_trace_store_claims_and_settlements_have_spans(spans: InMemorySpanExporter) -> None:
    app = Rota("memory://", trace_store=True)
    one, other = app.task(name="one")(_nothing), app.task(name="other")(_nothing)
    await app.submit_many([one.bind(), one.bind(), other.bind()])
    async with app:
        while any((await app.depths()).values()):
            await app.client().news(0.05)
    (send,) = stored(spans, "send")
    (receive,) = stored(spans, "receive")
    assert receive.kind is SpanKind.CLIENT
    assert set(links(receive)) == set(ids([send])), "it is linked to the submits"
    assert dict(receive.attributes or {})["messaging.batch.message_count"] == 3
    settles = {span.name: span for span in stored(spans, "settle")}
    assert settles.keys() == {"settle one", "settle other"}
    assert {span.kind for span in settles.values()} == {SpanKind.CLIENT}
    assert set(links(settles["settle one"])) == set(ids(named(spans, "process one")))
    (alone,) = named(spans, "process other")
    parent = settles["settle other"].parent
    assert parent is not None
    assert [(parent.trace_id, parent.span_id)] == ids([alone]), "the settle of one call is a part of its trace"
    assert dict(settles["settle other"].attributes or {})["messaging.operation.type"] == "settle"


async def test_without_trace_store_they_have_none(app: Rota, spans: InMemorySpanExporter) -> None:
    async with app:
        await (await app.tasks["inner"].submit()).result()
    assert {span.name for span in spans.get_finished_spans()} == {"send inner", "process inner"}


async def test_a_claim_that_fails_has_a_span_with_the_error_and_one_that_finds_nothing_has_none(
    spans: InMemorySpanExporter,
) -> None:
    with pytest.raises(ValueError, match="gone"), traces.receiving():
        raise ValueError("gone")
    with traces.receiving():
        pass
    (receive,) = stored(spans, "receive")
    assert dict(receive.attributes or {})["error.type"] == "ValueError"
    with pytest.raises(OSError, match="away"), traces.settling([("one", Settlement("r", 1, "w", SUCCEEDED, "x"))]):
        raise OSError("away")
    (settle,) = stored(spans, "settle")
    assert settle.status.status_code is trace.StatusCode.ERROR
