"""Metrics: the whole fleet in one scrape."""

import re
from pathlib import Path

import httpx
import pytest
from msgspec.structs import replace
from prometheus_client.openmetrics.parser import text_string_to_metric_families as text_string_to_openmetrics_families
from prometheus_client.parser import text_string_to_metric_families

from rota import Rota, State
from rota.domain.settlement import Finish, Settlement
from rota.store import ClaimRequest, Report, Tally, Total, What
from rota.web import asgi
from rota.web.labels import MOST_SERIES, Labels
from rota.web.own_metrics import OwnMetrics
from storekit.contract.stage import new_run
from storekit.servers.redis import RedisServer
from tests.faults.conftest import store_url as store_url
from tests.requirement import requirement
from tests.web.conftest import HOST, Caller, by_role

Samples = dict[tuple[str, str], float]


async def scrape(http: httpx.AsyncClient) -> Samples:
    """The samples by name and labels."""
    text = (await http.get("/metrics")).text
    return {
        (sample.name, ",".join(f"{name}={value}" for name, value in sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


async def report(app: Rota, *tallies: Tally) -> None:
    store = await app.client().store()
    number = report.__dict__["n"] = report.__dict__.get("n", 0) + 1
    await store.claim(
        ClaimRequest("ada", number, ["add"], 0, 30, Report(version="9", seats=4, leased=1, tallies=tallies))
    )


async def test_counters_come_from_the_totals_of_the_store(app: Rota, caller: Caller) -> None:
    await report(app, Tally("add", 2, 1, lost=1, durations={20: 2, 24: 1}, ran=7_000_000, waits={0: 3}, waited=300))
    seen = await scrape(caller("viewer"))
    assert seen["rota_runs_total", "status=succeeded,task=add"] == 2
    assert seen["rota_leases_lost_total", "task=add"] == 1
    assert seen["rota_claims_total", ""] == 3
    assert seen["rota_run_duration_seconds_sum", "task=add"] == 7
    bounds = ("0.25", "1", "4", "+Inf")
    assert [seen["rota_run_duration_seconds_bucket", f"le={le},task=add"] for le in bounds] == [0, 2, 3, 3]
    assert (seen["rota_workers", "version=9"], seen["rota_seats", "version=9"]) == (1, 4)


async def test_gauges_show_what_waits(caller: Caller) -> None:
    http = caller()
    for a in range(3):
        await http.post("/api/v1/runs", json={"task": "add", "args": {"a": a}})
    for later in ({"queue": "gpu"}, {"delay": 600}):
        await http.post("/api/v1/runs", json={"task": "add", "args": {"a": 9}} | later)
    seen = await scrape(http)
    assert seen["rota_runs_queued", "task=add"] == 5
    due = {labels: count for (name, labels), count in seen.items() if name == "rota_runs_due"}
    assert due == {"queue=default,task=add": 3, "queue=gpu,task=add": 1}
    assert (seen["rota_store_up", ""], seen["rota_schedules", "state=active"]) == (1, 0)


async def test_many_tasks_do_not_make_endless_series(app: Rota, caller: Caller) -> None:
    await report(app, *(Tally(f"t{i:04}", 1) for i in range(MOST_SERIES + 7)))
    seen = await scrape(caller())
    assert seen["rota_runs_total", "status=succeeded,task=_other"] == 7
    assert (
        len([name for name, labels in seen if name == "rota_runs_total" and "succeeded" in labels]) == MOST_SERIES + 1
    )


async def test_who_asks_for_open_metrics_gets_them(caller: Caller) -> None:
    answer = await caller().get("/metrics", headers={"Accept": "application/openmetrics-text; version=1.0.0"})
    assert answer.headers["content-type"].startswith("application/openmetrics-text")
    assert answer.text.endswith("# EOF\n")


async def test_the_page_names_every_metric(app: Rota, caller: Caller) -> None:
    page = (Path(__file__).parents[2] / "docs" / "observability.md").read_text()
    rows = "".join(line for line in page.splitlines() if line.startswith("| `rota_"))
    await report(app, Tally("add", 1, lost=1, durations={20: 1}, waits={0: 1}))
    parts = re.compile(r"_(bucket|sum|count|created)$")
    seen = {parts.sub("", name) for name, _ in await scrape(caller("viewer"))}
    named = set(re.findall(r"`(rota_\w+)`", rows))
    assert seen - {"rota_resyncs_total", "rota_schedule_next_timestamp_seconds"} <= named
    text = (await caller("viewer").get("/metrics")).text
    assert all(re.search(rf"^# TYPE {name.removesuffix('_total')}", text, re.M) for name in named), named


async def counted(app: Rota, *totals: Total) -> None:
    store = await app.client().store()
    number = report.__dict__["n"] = report.__dict__.get("n", 0) + 1
    await store.claim(ClaimRequest("ada", number, ["add"], 0, 30, Report(version="9", totals=totals)))


@requirement("2.10")
async def test_refusals_and_accepted_runs_are_counted_by_task_and_reason(app: Rota, caller: Caller) -> None:
    http = caller()
    body = {"task": "greet", "args": {"user": "ada"}}
    answers = [await http.post("/api/v1/runs", json=body) for _ in range(3)]
    assert [answer.status_code for answer in answers] == [201, 409, 409], answers[0].text
    seen = await scrape(http)
    assert seen["rota_submitted_total", "task=greet"] == 1
    assert seen["rota_task_skipped_total", "reason=already_queued,task=greet"] == 2
    await http.post("/api/v1/tasks/add/pause", json={})
    assert not [
        labels for name, labels in await scrape(http) if name == "rota_task_skipped_total" and "paused" in labels
    ]


async def test_what_workers_count_beside_runs_is_shown(app: Rota, caller: Caller) -> None:
    await report(app, Tally("add", lost=2))
    await counted(
        app,
        Total(What.FIRED, "nightly", "accepted", 3),
        Total(What.FIRED, "nightly", "missed", 2),
        Total(What.LATENESS, "nightly", "0", 2),
        Total(What.LATENESS, "nightly", "20", 1),
        Total(What.LATE_BY, "nightly", count=1_500_000),
        Total(What.POISONED, "add"),
        Total(What.STALE, "", count=4),
        Total(What.CONFLICT, "", count=5),
        Total(What.UNRENEWED, "", count=6),
    )
    seen = await scrape(caller("viewer"))
    assert seen["rota_ticks_total", "reason=missed,schedule=nightly"] == 2
    assert seen["rota_tick_lateness_seconds_bucket", "le=0.00390625,schedule=nightly"] == 2
    assert seen["rota_tick_lateness_seconds_count", "schedule=nightly"] == 3
    assert seen["rota_tick_lateness_seconds_sum", "schedule=nightly"] == 1.5
    assert (seen["rota_poison_total", "task=add"], seen["rota_rescues_total", "task=add"]) == (1, 2)
    assert seen["rota_leases_lost_total", "task=add"] == 3
    assert (seen["rota_settles_stale_total", ""], seen["rota_tick_conflicts_total", ""]) == (4, 5)
    assert seen["rota_renewals_failed_total", ""] == 6


async def test_a_name_that_was_shown_stays_when_others_come(app: Rota, caller: Caller) -> None:
    http = caller()
    await report(app, *(Tally(f"t{i:04}", 1) for i in range(MOST_SERIES)))
    await scrape(http)
    await report(app, Tally("aaa", 1), Tally("t0499", 1))
    seen = await scrape(http)
    assert ("rota_runs_total", "status=succeeded,task=aaa") not in seen
    assert seen["rota_runs_total", "status=succeeded,task=t0499"] == 2
    assert seen["rota_runs_total", "status=succeeded,task=_other"] == 1
    assert seen["rota_series_dropped_total", "metric=task"] == 1


async def test_requests_and_verbs_of_the_store_are_timed(caller: Caller) -> None:
    http = caller()
    await http.get("/api/v1/runs/none")
    await http.get("/nowhere")
    await http.request("BREW", "/api/v1/runs")
    await http.post("/api/v1/tasks/add/pause", json={"note": "x"})
    seen = await scrape(http)
    assert seen["rota_http_request_seconds_count", "method=GET,route=/api/v1/runs/{id},status=404"] == 1
    assert seen["rota_http_request_seconds_count", "method=GET,route=other,status=404"] == 1
    assert seen["rota_http_request_seconds_count", "method=other,route=other,status=405"] == 1
    assert seen["rota_store_seconds_count", "verb=runs"] >= 1
    assert seen["rota_audit_total", "action=tasks.pause"] == 1
    assert seen["rota_store_info", "kind=memory,version="] == 1


async def test_the_age_of_due_runs_is_seen_however_many_others_wait_or_are_held(
    valkey: RedisServer, namespace: str
) -> None:
    app = Rota(valkey.url, namespace=namespace)
    async with app.client() as client:
        first = new_run("fetch")
        await client.put([first, *(new_run("fetch", needs=(first.id,)) for _ in range(5001))])
        await client.put([*(new_run("fetch") for _ in range(200)), new_run("send")])
        transport = httpx.ASGITransport(asgi(app, by_role, hosts=[]))
        headers = {"Authorization": "Bearer viewer"}
        async with httpx.AsyncClient(transport=transport, base_url=HOST, headers=headers) as http:
            seen = await scrape(http)
            task = (await http.get("/api/v1/tasks/fetch")).json()
            run = (await http.get(f"/api/v1/runs/{first.id}")).json()
    assert seen["rota_runs_queued", "task=fetch"] == 5202
    assert seen["rota_oldest_due_seconds", "task=fetch"] > seen["rota_oldest_due_seconds", "task=send"] > 0
    assert (task["queued"], task["oldest_due_at"]) == (5202, run["due_at"])


async def test_calls_of_this_process_have_exemplars(app: Rota, caller: Caller) -> None:
    http = caller()
    assert "rota_call_seconds_count" not in await text_of(http), "a process without handlers"
    async with app:
        made = await app.tasks["add"].submit(1)
        await made.result()
        await app.client().ended(made.id)
    text = await text_of(http)
    (line,) = [line for line in text.splitlines() if f'run="{made.id}"' in line]
    assert re.match(r'rota_call_seconds_bucket\{le="[\d.]+",task="add"\} 1\.0 # \{run=', line)
    assert f'run="{made.id}"' not in (await http.get("/metrics")).text, "the plain format has none"


async def text_of(http: httpx.AsyncClient) -> str:
    """The metrics as OpenMetrics, which the parser accepts."""
    found = (await http.get("/metrics", headers={"Accept": "application/openmetrics-text; version=1.0.0"})).text
    list(text_string_to_openmetrics_families(found))  # type: ignore[no-untyped-call]
    return found


async def test_an_exemplar_names_the_trace_of_the_call_and_the_last_run_of_its_bucket(app: Rota) -> None:
    own, run = OwnMetrics(), await (await app.tasks["add"].submit(1)).refresh()
    trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    finish = Finish(State.SUCCEEDED, None)
    for id, seconds in (("one", 0.5), ("two", 0.75), ("three", 90_000.0)):
        own.ended(replace(run, id=id), Settlement(id, 1, "ada", finish, "succeeded", seconds=seconds, trace=trace))
    (found,) = [each for each in own.metrics(0, {}, {}, Labels()) if each.name == "rota_call_seconds"]
    shown = {sample.labels["le"]: sample for sample in found.samples if "le" in sample.labels}
    assert [shown[le].value for le in ("0.25", "1", "16384", "+Inf")] == [0, 2, 2, 3]
    assert shown["0.25"].exemplar is None
    exemplar = shown["1"].exemplar
    assert exemplar is not None
    assert (exemplar.labels, exemplar.value) == ({"trace_id": trace.split("-")[1], "run": "two"}, 0.75)
    assert shown["+Inf"].exemplar is not None


@pytest.mark.parametrize("store_url", ["sqlite", "valkey-9", "postgres-18"], indirect=True)
async def test_the_store_is_named_with_the_version_of_its_server(store_url: str) -> None:
    app = Rota(store_url)
    async with (
        app.client(),
        httpx.AsyncClient(transport=httpx.ASGITransport(asgi(app, by_role, hosts=[])), base_url=HOST) as http,
    ):
        http.headers["Authorization"] = "Bearer admin"
        (labels,) = [labels for name, labels in await scrape(http) if name == "rota_store_info"]
    assert re.fullmatch(r"kind=(sqlite,version=3|redis,version=9|postgres,version=18)\.\d+[.\d]*", labels)
