"""Write the board for Grafana: deploy/grafana/rota.json. `python -m tools.board --check` fails if the file is old.

Every replica of `rota serve` shows the same totals of the store, so every query takes one of them by `max by`.
"""

import json
import sys
from pathlib import Path
from typing import Any

FILE = Path(__file__).parents[1] / "deploy" / "grafana" / "rota.json"
WIDTH, HEIGHT = 12, 8
Json = dict[str, Any]
SOURCE: Json = {"type": "prometheus", "uid": "${source}"}


def board() -> Json:
    rows: list[tuple[str, list[Json]]] = [
        (
            "Does it work?",
            [
                stat("Workers alive", "sum(max by (version) (rota_workers))"),
                stat(
                    "Last sign of a worker", "time() - max(rota_heartbeat_timestamp_seconds)", unit="s", red_above=120
                ),
                stat("Store", "max(rota_store_up)", red_below=1),
                stat("Starts in time, 1 h", "1 - rota:late_starts:ratio1h", unit="percentunit", red_below=0.999),
                stat("Oldest due run", "max(rota_oldest_due_seconds)", unit="s", red_above=300),
                stat("Paused tasks", "max(rota_tasks_paused)"),
            ],
        ),
        (
            "Runs",
            [
                graph("Ended runs", {"{{status}}": rate("rota_runs_total", "task, status", "status")}, unit="ops"),
                graph(
                    "Failures by task",
                    {"{{task}}": rate('rota_runs_total{status="failed"}', "task", "task")},
                    unit="ops",
                ),
                graph("Submitted", {"{{task}}": rate("rota_submitted_total", "task", "task")}, unit="ops"),
                graph(
                    "Skipped",
                    {"{{task}} {{reason}}": rate("rota_task_skipped_total", "task, reason", "task, reason")},
                    unit="ops",
                ),
                graph("Wait from due to start", quantiles("rota_run_wait_seconds"), unit="s"),
                graph("Duration", quantiles("rota_run_duration_seconds"), unit="s"),
            ],
        ),
        (
            "Queues",
            [
                graph("Queued", {"{{task}}": "max by (task) (rota_runs_queued)"}),
                graph("Due", {"{{task}} {{queue}}": "max by (task, queue) (rota_runs_due)"}),
                graph("Running", {"{{task}}": "max by (task) (rota_runs_running)"}),
                graph("Oldest due run", {"{{task}}": "max by (task) (rota_oldest_due_seconds)"}, unit="s"),
                graph("Workers of a task", {"{{task}}": "max by (task) (rota_task_workers)"}),
            ],
        ),
        (
            "Schedules and workers",
            [
                graph("Schedules", {"{{state}}": "max by (state) (rota_schedules)"}),
                graph(
                    "Overdue schedules",
                    {"{{schedule}}": "time() - max by (schedule) (rota_schedule_next_timestamp_seconds) > 0"},
                    unit="s",
                ),
                graph(
                    "Ticks",
                    {"{{reason}}": rate("rota_ticks_total", "schedule, reason", "reason")},
                    unit="ops",
                ),
                graph("Lateness of ticks", quantiles("rota_tick_lateness_seconds", "schedule"), unit="s"),
                graph(
                    "Since the last success",
                    {"{{schedule}}": "time() - max by (schedule) (rota_schedule_last_success_timestamp_seconds) < 1e9"},
                    unit="s",
                ),
                graph(
                    "Late steps and open breakers",
                    {
                        "late {{flow}} {{step}}": "max by (flow, step) (rota_flow_step_late) > 0",
                        "breakers {{task}}": "max by (task) (rota_breakers_open) > 0",
                    },
                ),
                graph(
                    "Seats",
                    {
                        "seats": "sum(max by (version) (rota_seats))",
                        "held": "sum(max by (version) (rota_seats_held))",
                        "overdue": "sum(max by (version) (rota_threads_overdue))",
                    },
                ),
                graph(
                    "Claims and lost leases",
                    {
                        "claims": "max(rate(rota_claims_total[$__rate_interval]))",
                        "lost {{task}}": rate("rota_leases_lost_total", "task", "task"),
                        "rescued": rate("rota_rescues_total", "task", ""),
                        "poison {{task}}": rate("rota_poison_total", "task", "task"),
                        "failed renewals": "max(rate(rota_renewals_failed_total[$__rate_interval]))",
                        "refused endings": "max(rate(rota_settles_stale_total[$__rate_interval]))",
                        "tick conflicts": "max(rate(rota_tick_conflicts_total[$__rate_interval]))",
                    },
                    unit="ops",
                ),
            ],
        ),
        (
            "Service",
            [
                graph("Streams of events", {"{{instance}}": "rota_event_streams"}),
                graph(
                    "Resyncs",
                    {"{{reason}}": "sum by (reason) (rate(rota_resyncs_total[$__rate_interval]))"},
                    unit="ops",
                ),
                graph(
                    "Requests",
                    {
                        "{{status}}": "sum by (status) (rate(rota_http_request_seconds_count[$__rate_interval]))",
                        "p95": "histogram_quantile(0.95, sum by (le) "
                        "(rate(rota_http_request_seconds_bucket[$__rate_interval])))",
                    },
                ),
                graph(
                    "Verbs of the store, p95",
                    {
                        "{{verb}}": "histogram_quantile(0.95, sum by (verb, le) "
                        "(rate(rota_store_seconds_bucket[$__rate_interval])))"
                    },
                    unit="s",
                ),
                graph(
                    "Errors of the store",
                    {"{{verb}} {{error}}": "sum by (verb, error) (rate(rota_store_errors_total[$__rate_interval]))"},
                    unit="ops",
                ),
                graph(
                    "Calls of services with an engine, p95, with runs and traces",
                    {
                        "{{task}}": "histogram_quantile(0.95, sum by (task, le) "
                        "(rate(rota_call_seconds_bucket[$__rate_interval])))"
                    },
                    unit="s",
                    exemplars=True,
                ),
                graph(
                    "Changes by people",
                    {"{{action}}": "sum by (action) (increase(rota_audit_total[$__rate_interval]))"},
                ),
                graph(
                    "Store and names",
                    {
                        "{{kind}} {{version}}": "count by (kind, version) (rota_store_info)",
                        "dropped {{metric}}": "max by (metric) (rota_series_dropped_total)",
                    },
                ),
                graph("Versions", {"{{version}}": "count by (version) (rota_build_info)"}),
            ],
        ),
    ]
    return {
        "uid": "rota",
        "title": "rota",
        "tags": ["rota"],
        "schemaVersion": 39,
        "editable": True,
        "refresh": "30s",
        "time": {"from": "now-6h", "to": "now"},
        "templating": {"list": [{"name": "source", "label": "Source", "type": "datasource", "query": "prometheus"}]},
        "panels": placed(rows),
    }


def rate(metric: str, one_of: str, by: str) -> str:
    """Per second, of one replica; summed by the labels `by`."""
    name, _, labels = metric.partition("{")
    selector = f"{name}{{{labels}" if labels else name
    return f"sum by ({by}) (max by ({one_of}) (rate({selector}[$__rate_interval])))"


def quantiles(metric: str, label: str = "task") -> dict[str, str]:
    found = f"sum by (le) (max by ({label}, le) (rate({metric}_bucket[$__rate_interval])))"
    return {f"p{round(100 * q)}": f"histogram_quantile({q}, {found})" for q in (0.5, 0.95, 0.99)}


def stat(
    title: str, query: str, unit: str = "none", red_above: float | None = None, red_below: float | None = None
) -> Json:
    steps: list[Json] = [{"color": "green", "value": None}]
    if red_above is not None:
        steps.append({"color": "red", "value": red_above})
    if red_below is not None:
        steps = [{"color": "red", "value": None}, {"color": "green", "value": red_below}]
    panel = _panel("stat", title, {"": query}, unit)
    panel["fieldConfig"]["defaults"]["thresholds"] = {"mode": "absolute", "steps": steps}
    return panel


def graph(title: str, queries: dict[str, str], unit: str = "none", exemplars: bool = False) -> Json:
    """`exemplars`: the panel shows single calls, with their runs and traces, if Prometheus keeps them."""
    panel = _panel("timeseries", title, queries, unit)
    for target in panel["targets"] if exemplars else ():
        target["exemplar"] = True
    return panel


def _panel(kind: str, title: str, queries: dict[str, str], unit: str) -> Json:
    targets = [
        {"refId": chr(ord("A") + at), "expr": query, "legendFormat": legend, "datasource": SOURCE}
        for at, (legend, query) in enumerate(queries.items())
    ]
    defaults: Json = {"unit": unit}
    return {
        "type": kind,
        "title": title,
        "datasource": SOURCE,
        "targets": targets,
        "fieldConfig": {"defaults": defaults, "overrides": []},
    }


def placed(rows: list[tuple[str, list[Json]]]) -> list[Json]:
    """Give each panel its place and number: stats in one line, graphs two by two."""
    panels: list[Json] = []
    y = 0
    for title, inside in rows:
        panels.append({"type": "row", "title": title, "collapsed": False, "gridPos": _at(0, y, 24, 1), "panels": []})
        y += 1
        wide, high = (24 // len(inside), 4) if inside[0]["type"] == "stat" else (WIDTH, HEIGHT)
        for at, panel in enumerate(inside):
            across = 24 // wide
            panels.append({**panel, "gridPos": _at(at % across * wide, y + at // across * high, wide, high)})
        y += -(-len(inside) // (24 // wide)) * high
    return [{"id": number, **panel} for number, panel in enumerate(panels, 1)]


def _at(x: int, y: int, w: int, h: int) -> Json:
    return {"x": x, "y": y, "w": w, "h": h}


def text() -> str:
    return json.dumps(board(), indent=2) + "\n"


if __name__ == "__main__":
    if "--check" in sys.argv:
        sys.exit(0 if FILE.exists() and FILE.read_text() == text() else f"{FILE} is old: python -m tools.board")
    FILE.parent.mkdir(parents=True, exist_ok=True)
    FILE.write_text(text())
