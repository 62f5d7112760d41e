"""What deploy/ promises is so: metrics exist, alerts have runbooks, the board is what its code makes."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client.metrics_core import Metric

from rota import Rota
from rota.cli.tree import app as commands
from rota.store import ClaimRequest, Report, Tally
from rota.web.labels import Labels
from rota.web.metrics import registry
from rota.web.own_metrics import OwnMetrics
from tests.requirement import requirement
from tools.board import FILE, text

ROOT = Path(__file__).parents[2]
RULES = ROOT / "deploy" / "prometheus"
RUNBOOKS = (ROOT / "docs" / "runbooks.md").read_text()
MOST_PAGES = 5


def rules() -> Iterator[dict[str, Any]]:
    for file in ("rota.rules.yml", "rota.alerts.yml"):
        for group in yaml.safe_load((RULES / file).read_text())["groups"]:
            yield from group["rules"]


ALERTS = {rule["alert"]: rule for rule in rules() if "alert" in rule}


async def exposed() -> set[str]:
    """The names of all series that /metrics can show."""
    app = Rota("memory://")
    async with app.client() as client:
        store = await client.store()
        await store.claim(ClaimRequest("ada", 1, ["add"], 0, 30, Report(tallies=(Tally("add", 1),))))
        own = OwnMetrics().metrics(1, {"gap": 1}, {"kind": "memory"}, Labels())
        found: list[Metric] = list((await registry(client, own)).collect())
    endings = {"counter": ["_total"], "histogram": ["_bucket", "_sum", "_count"], "info": ["_info"], "gauge": [""]}
    return {metric.name + ending for metric in found for ending in endings[metric.type]}


async def test_every_metric_of_the_board_and_of_the_rules_exists() -> None:
    known = await exposed() | {rule["record"] for rule in rules() if "record" in rule}
    board = [target["expr"] for panel in json.loads(FILE.read_text())["panels"] for target in panel.get("targets", [])]
    used = {
        name
        for query in [*board, *(rule["expr"] for rule in rules())]
        for name in re.findall(r"\b(?:rota|scheduler)[_:][\w:]+", query)
    }
    assert used <= known, used - known
    untested = {"rota_runs_paused", "rota_build_info"}
    assert await exposed() - used <= untested | {name for name in known if name.endswith(("_sum", "_count"))}


def test_the_board_is_what_its_code_makes() -> None:
    assert FILE.read_text() == text(), "python -m tools.board writes it"


@requirement("1.13")
def test_at_most_five_alerts_page() -> None:
    severities = [alert["labels"]["severity"] for alert in ALERTS.values()]
    assert set(severities) == {"page", "ticket"}
    assert severities.count("page") <= MOST_PAGES
    assert "14.4 * 0.001" in ALERTS["RotaStartsLateFast"]["expr"], "the budget of 99.9 % burns fourteen times too fast"


@pytest.mark.parametrize("name", ALERTS)
def test_an_alert_has_a_runbook_that_names_a_command(name: str) -> None:
    assert ALERTS[name]["annotations"]["runbook"] == f"docs/runbooks.md#{name.lower()}"
    section = RUNBOOKS.partition(f"## {name}\n")[2].partition("\n## ")[0]
    named = re.findall(r"`rota ([^`]+)`", section)
    assert named
    for command in named:
        path, _, _ = commands.parse_commands(command.split())
        assert path, f"there is no command rota {command}"


@requirement("1.8")
def test_every_alert_is_tested_with_its_series_and_without_any() -> None:
    tests = [test for file in RULES.glob("*.test.yml") for test in yaml.safe_load(file.read_text())["tests"]]
    fires, absent = set[str](), set[str]()
    for test in tests:
        for case in test.get("alert_rule_test", []):
            if not test["input_series"]:
                absent.add(case["alertname"])
            elif case["exp_alerts"]:
                fires.add(case["alertname"])
    assert fires == absent == ALERTS.keys()


@requirement("1.16")
def test_what_other_schedulers_call_their_metrics_is_recorded() -> None:
    recorded = {rule["record"] for rule in rules() if "record" in rule}
    assert recorded >= {
        "scheduler_jobs_total",
        "scheduler_executions_total",
        "scheduler_execution_duration_seconds_bucket",
        "scheduler_lock_acquisitions_total",
        "scheduler_lock_failures_total",
        "scheduler_task_runs_total",
    }


@requirement("1.16")
def test_the_platform_of_the_example_has_an_api_without_a_scheduler_and_a_service_of_schedulers() -> None:
    example = ROOT / "examples" / "agent_platform" / "compose.yaml"
    (included,) = yaml.safe_load(example.read_text())["include"]
    services = yaml.safe_load((example.parent / included).resolve().read_text())["services"]
    api, scheduler = services["backend"], services["scheduler"]
    assert api["command"][-2:] == ["--workers", "4"]
    assert api["command"][0] == "examples.agent_platform.api:api"
    assert api["environment"]["ROTA_ENABLED"] == "false"
    assert "serve" in scheduler["command"]
    assert "ROTA_ENABLED" not in scheduler["environment"]
    for service in (api, scheduler):
        assert service["healthcheck"]["test"][:3] == ["CMD", "rota", "health"]
        assert service["environment"]["ROTA_URL"].startswith("redis://"), "one store for all"


def test_nothing_is_killed_before_its_grace_is_over() -> None:
    """rota's own grace is 30 s: whoever stops a process waits longer."""
    compose = yaml.safe_load((ROOT / "deploy" / "compose.yaml").read_text())
    assert compose["x-rota"]["stop_grace_period"] == "45s"
    for unit in (ROOT / "deploy" / "systemd").glob("*.service"):
        assert "TimeoutStopSec=45" in unit.read_text()
    for name in ("serve", "worker"):
        pod = yaml.safe_load((ROOT / "deploy" / "kubernetes" / "base" / f"{name}.yaml").read_text())
        assert pod["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] == 45
