"""`rota import`: a plan, a file, schedules in the store, and a cut-over at an instant."""

import json
import runpy
import sqlite3
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from rota.cli.movein.view import plan_page
from rota.cli.render.show import console
from rota.movein.crontab import read_crontab
from rota.movein.fires import prove
from tests.movein.test_beat_db import SCHEMA, task
from tests.movein.test_cronjobs import MANIFEST
from tests.surfaces.called import Called

LINES = """CRON_TZ=Europe/Paris
0 3 * * * /usr/bin/backup.sh
*/15 8-18 * * mon-fri /usr/bin/sync --all
@reboot /usr/bin/start
"""


@pytest.fixture
def lines(tmp_path: Path) -> str:
    path = tmp_path / "lines"
    path.write_text(LINES)
    return str(path)


def ids(rota: Called) -> dict[str, Any]:
    return {each["id"]: each for each in rota.json("schedules", "ls")}


def test_a_plan_writes_nothing(rota: Called, lines: str) -> None:
    plan = rota.json("import", "crontab", lines)
    assert [(row["name"], row["outcome"]) for row in plan["rows"]] == [
        ("backup", "same"),
        ("sync", "same"),
        ("start", "refused"),
    ]
    assert "no boot" in plan["rows"][2]["refused"]
    assert [(proof["name"], proof["unnamed"]) for proof in plan["proofs"]] == [("backup", []), ("sync", [])]
    assert plan["proofs"][0]["compared"] in (400, 401)
    assert (
        rota("import", "crontab", lines)
        .splitlines()[1]
        .startswith("backup\tline 2\tsame\tcron 0 3 * * * Europe/Paris\t")
    )
    assert ids(rota) == {}


def test_a_plan_fits_eighty_columns(lines: str) -> None:
    source = read_crontab(Path(lines), "UTC", "--tz", system=False)
    proofs = [proof for row in source.rows if (proof := prove(row, datetime.now(UTC))) is not None]
    screen = console()
    screen.width = 80
    with screen.capture() as captured:
        screen.print(plan_page(source, proofs, None))
    said = captured.get().splitlines()
    assert max(map(len, said)) <= 80
    assert "2 same, 1 refused" in " ".join(" ".join(said).split())
    assert "= backup" in [line.rstrip() for line in said]


def test_a_file_has_the_tasks_with_their_schedules(
    rota: Called, lines: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROTA_URL", "memory://")
    made = tmp_path / "jobs.py"
    rota("import", "crontab", lines, "--to", str(made), "--at", "2099-01-01T12:00")
    assert f"wrote {made}" in rota.err
    app = runpy.run_path(str(made))["app"]
    assert sorted(app.tasks) == ["backup", "sync"]
    assert 'start=datetime.fromisoformat("2099-01-01T11:00:00+00:00")' in made.read_text(), "noon in Paris"
    assert "# line 4: @reboot /usr/bin/start: rota knows no boot" in made.read_text()
    rota("import", "crontab", lines, "--to", str(made), code=2)
    assert "the file exists" in rota.err


def test_schedules_go_through_the_door_of_schedules_put(rota: Called, lines: str) -> None:
    rota("import", "crontab", lines, "--apply", code=2)
    assert "line 2: " in rota.err
    assert "--unknown-ok takes any name" in rota.err

    done = rota.json("import", "crontab", lines, "--apply", "--unknown-ok", "--at", "2099-01-01T00:00Z")
    assert [each["id"] for each in done["applied"]] == ["backup", "sync"]
    found = rota.json("schedules", "show", "backup")
    assert (found["overlap"], found["catch_up"], found["task"]) == ("allow", "skip", "backup")
    assert (found["start"], found["next_at"]) == ("2099-01-01T00:00:00.000000Z", "2099-01-01T02:00:00.000000Z")
    status = rota.json("import", "status", "crontab", lines)
    assert [(row["name"], row["source"], row["rota"]) for row in status] == [
        ("backup", "fires", "active"),
        ("sync", "fires", "active"),
        ("start", "refused", "absent"),
    ]
    assert status[0]["start"] == "2099-01-01T00:00:00.000000Z"
    assert status[0]["source_next"] < status[0]["next_at"]


def test_a_file_and_the_store_together_have_each_schedule_once(
    rota: Called, lines: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = tmp_path / "jobs.py"
    rota("import", "crontab", lines, "--to", str(made), "--apply")
    monkeypatch.setenv("ROTA_URL", "memory://")
    assert "schedule=" not in made.read_text()
    assert sorted(ids(rota)) == ["backup", "sync"]
    rota("import", "crontab", lines, "--apply", "--unknown-ok")
    assert sorted(ids(rota)) == ["backup", "sync"], "a second import changes nothing"


def test_a_cut_over_in_the_past_would_miss_ticks(rota: Called, lines: str) -> None:
    past = (datetime.now(UTC) - timedelta(minutes=1)).isoformat()
    rota("import", "crontab", lines, "--apply", "--unknown-ok", "--at", past, code=2)
    assert "has passed" in rota.err


def test_a_schedule_of_another_task_is_not_replaced(rota: Called, lines: str) -> None:
    rota("schedules", "put", "backup", "daily 05:00", "other", "--unknown-ok")
    rota("import", "crontab", lines, "--apply", "--unknown-ok", code=2)
    assert "there is a schedule backup already, which calls other" in rota.err
    assert json.dumps(ids(rota)["backup"]["trigger"]) == '"daily 05:00 UTC"'


def test_the_source_is_stopped_where_rota_takes_over(rota: Called, tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "beat.db") as connection:
        connection.executescript(SCHEMA + task("nightly", id=1, crontab_id=1))
    url, at = f"sqlite:///{tmp_path}/beat.db", "2099-01-01T04:00Z"
    rota("import", "beat-db", url, "--disable-source", code=2)
    assert "say --apply and --at INSTANT too" in rota.err
    asked = ("import", "beat-db", url, "--apply", "--unknown-ok", "--at", at, "--disable-source")
    rota(*asked)
    assert "the source fires nothing from 2099-01-01T04:00:00Z on" in rota.err
    first = ids(rota)["nightly"]
    assert first["next_at"] == "2099-01-02T02:00:00.000000Z", "3:00 in Paris, after the cut-over"
    rota(*asked)  # after a lost answer: the same command again
    assert {**ids(rota)["nightly"], "left": 0} == {**first, "left": 0}, (
        "a row that ends at the cut-over does not end the schedule of rota"
    )
    (row,) = rota.json("import", "status", "beat-db", url)
    assert (row["name"], row["rota"], row["next_at"]) == ("nightly", "active", first["next_at"])


def test_a_celery_app_and_cronjobs_go_the_same_way(rota: Called, tmp_path: Path) -> None:
    file = tmp_path / "jobs.yaml"
    file.write_text(MANIFEST)
    for words, sent in (
        (["celery", "tests.movein.celery_shop:app"], {"nightly", "office", "often", "spans", "first"}),
        (["k8s", str(file), "--tz", "UTC"], {"report", "sync"}),
    ):
        code = str(tmp_path / f"{words[0]}.py")
        done = rota.json("import", *words, "--to", code, "--apply", "--at", "2099-01-01T00:00Z")
        assert {each["id"] for each in done["applied"]} == sent
        assert "has to stop then" in rota.err
        status = rota.json("import", "status", *words)
        assert {row["name"] for row in status if row["rota"] != "absent"} == sent
        assert {row["rota"] for row in status if row["name"] == "report"} <= {"paused"}
    assert rota.json("schedules", "show", "report")["overlap"] == "skip"
