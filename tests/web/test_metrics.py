"""Metrics: the whole fleet in one scrape."""

import re
from pathlib import Path

import httpx
from prometheus_client.parser import text_string_to_metric_families

from rota import Rota
from rota.store import ClaimRequest, Report, Tally
from rota.web.metrics import MOST_SERIES
from tests.web.conftest import Caller

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
    seen = await scrape(http)
    assert seen["rota_runs_queued", "task=add"] == 3
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
