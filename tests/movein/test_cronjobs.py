"""CronJobs of Kubernetes: their grammar, their policies, and what is refused instead of guessed."""

import json
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from random import Random
from zoneinfo import ZoneInfo

import pytest

from rota import InvalidOptions
from rota.domain.triggers import Cron
from rota.movein.code import write_code
from rota.movein.cronjobs import read_cronjobs, read_expression
from rota.movein.fires import fires_of, prove
from rota.movein.plan import Row
from tests.movein.randoms import ZONES, expression

NOW = datetime(2026, 11, 17, 9, 30, tzinfo=UTC)
MANIFEST = """
apiVersion: batch/v1
kind: CronJob
metadata: {name: report, namespace: shop}
spec:
  schedule: "30 1 * * *"
  timeZone: America/New_York
  concurrencyPolicy: Forbid
  startingDeadlineSeconds: 200
  suspend: true
  jobTemplate:
    spec:
      backoffLimit: 2
      activeDeadlineSeconds: 600
      template:
        spec:
          containers: [{name: main, image: "shop:1", command: [report], args: ["--all"]}]
---
apiVersion: v1
kind: Service
metadata: {name: web}
---
apiVersion: batch/v1
kind: CronJobList
items:
- {kind: CronJob, metadata: {name: sync}, spec: {schedule: "5/15 ? * * mon-fri", concurrencyPolicy: Replace}}
- {kind: CronJob, metadata: {name: wild}, spec: {schedule: "@every 1h30m", timeZone: UTC}}
- {kind: CronJob, metadata: {name: sunday}, spec: {schedule: "0 0 * * 7", timeZone: UTC}}
- {kind: CronJob, metadata: {name: both}, spec: {schedule: "0 0 */2 * mon", timeZone: UTC}}
- {kind: CronJob, metadata: {name: mars}, spec: {schedule: "@daily", timeZone: Mars/North}}
- {kind: CronJob, metadata: {name: policy}, spec: {schedule: "@daily", timeZone: UTC, concurrencyPolicy: Never}}
"""


def rows(tmp_path: Path, text: str = MANIFEST, tz: str | None = None) -> dict[str, Row]:
    path = tmp_path / "jobs.yaml"
    path.write_text(text)
    return {row.name: row for row in read_cronjobs(path, tz).rows}


def test_policies_deadlines_and_zones_are_carried(tmp_path: Path) -> None:
    found = rows(tmp_path, tz="Europe/Paris")
    report, sync = found["report"], found["sync"]
    assert (str(report.trigger), report.where) == ("cron 30 1 * * * America/New_York dst each", "shop/report")
    assert (report.timed.overlap, report.timed.grace, report.paused) == ("skip", 200.0, True)
    assert (str(sync.trigger), sync.timed.overlap, sync.paused) == (
        "cron 5-59/15 * * * mon-fri Europe/Paris dst each",
        "replace",
        False,
    )
    assert sync.timed.grace is None
    assert report.notes == [
        "backoffLimit 2: Kubernetes starts a failed pod again; give the task retry=",
        "activeDeadlineSeconds 600: give the task timeout=",
    ]


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("sync", "which zone? it has no timeZone"),
        ("wild", "@every 1h30m counts from when the cluster made it; write `every 1h30m` yourself"),
        ("sunday", "Kubernetes itself refuses '7': at most 6"),
        ("both", "clusters read it as both or as either"),
        ("mars", "Mars/North"),
        ("policy", "refuses concurrencyPolicy: Never"),
    ],
)
def test_nothing_is_guessed(tmp_path: Path, name: str, why: str) -> None:
    assert why in rows(tmp_path)[name].refused


def test_a_repeated_time_fires_twice_and_one_in_a_gap_not_at_all(tmp_path: Path) -> None:
    """As the tests of the cluster's cron library have it for New York."""
    york = ZoneInfo("America/New_York")
    for expr, night, wanted in (
        ("30 2 * * *", datetime(2012, 3, 11, tzinfo=york), ["2012-03-12T02:30:00-04:00"]),
        ("30 1 * * *", datetime(2012, 11, 4, tzinfo=york), ["2012-11-04T01:30:00-04:00", "2012-11-04T01:30:00-05:00"]),
        ("30 2 4 11 *", datetime(2012, 11, 4, tzinfo=york), ["2012-11-04T02:30:00-05:00"]),
    ):
        manifest = f"{{kind: CronJob, metadata: {{name: x}}, spec: {{schedule: '{expr}', timeZone: America/New_York}}}}"
        trigger = rows(tmp_path, f"---\n{manifest}")["x"].trigger
        assert trigger is not None
        fires = islice(fires_of(trigger, night, datetime(2013, 1, 1, tzinfo=UTC)), len(wanted))
        assert [fire.astimezone(york).isoformat() for fire in fires] == wanted


@pytest.mark.parametrize("count", [40, pytest.param(1000, marks=pytest.mark.soak)])
def test_random_schedules_fire_as_croniter_says(tmp_path: Path, count: int) -> None:
    chance = Random(20261117)
    items = [
        {
            "kind": "CronJob",
            "metadata": {"name": f"job-{number}"},
            "spec": {"schedule": expression(chance), "timeZone": chance.choice(ZONES)},
        }
        for number in range(count)
    ]
    found = rows(tmp_path, json.dumps({"kind": "List", "items": items}))
    proven = 0
    for row in found.values():
        proof = prove(row, NOW, 300)
        if row.refused:
            assert "never comes" in row.refused or "write the days out" in row.refused, row
            continue
        assert proof is not None
        assert not proof.unnamed, row
        proven += 1
    assert proven > count * 0.7


def test_lines_that_kubernetes_refuses_are_refused() -> None:
    assert read_expression("0 */2 ?,5 jan-mar/2 SUN") == "0 */2 * jan-mar/2 SUN"
    Cron(read_expression("0 12 * * Mon/2"))
    for wrong in (
        "* * * *",
        "* * * * * *",
        "60 * * * *",
        "*/0 * * * *",
        "@reboot",
        "TZ=UTC * * * * *",
        "1- * * * *",
        "",
    ):
        with pytest.raises(ValueError, match="Kubernetes itself refuses"):
            read_expression(wrong)


def test_the_code_names_what_the_pod_ran(tmp_path: Path) -> None:
    path = tmp_path / "jobs.yaml"
    path.write_text(MANIFEST)
    source = read_cronjobs(path, "UTC")
    code = write_code(source)
    assert "raise NotImplementedError('do what the image shop:1 did: report --all')" in code
    assert 'overlap="skip", grace=200.0, enabled=False' in code.replace("\n    ", " ").replace(",,", ",")
    compile(code, "jobs.py", "exec")
    assert "not read: Service" in source.notes


def test_a_file_that_is_neither_says_so(tmp_path: Path) -> None:
    with pytest.raises(InvalidOptions, match="is no JSON"):
        rows(tmp_path, "{")
    with pytest.raises(InvalidOptions, match="is no YAML"):
        rows(tmp_path, "a: [")
    with pytest.raises(InvalidOptions, match="No such file"):
        read_cronjobs(tmp_path / "none.yaml", None)
