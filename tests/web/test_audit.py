"""The audit: every change that a person asked for over HTTP or on the command line."""

import json
import subprocess
import sys
from pathlib import Path

from rota import Rota
from rota.store import AuditEntry
from tests.web.conftest import Caller, told

API = "/api/v1"


async def entries(app: Rota) -> list[AuditEntry]:
    async with app.client() as client:
        return (await client.rows(AuditEntry)).items


async def test_a_change_over_http_is_kept_with_who_asked_and_why(app: Rota, caller: Caller) -> None:
    http = caller("operator")
    run = (await http.post(f"{API}/runs", json={"task": "add", "args": {"a": 1}})).json()["run"]
    assert await entries(app) == [], "programs submit all the time"
    note, headers = {"note": "too many"}, {"X-Request-Id": "mine-1"}
    assert (await http.post(f"{API}/runs/{run}/cancel", json=note, headers=headers)).status_code == 200
    assert (await http.post(f"{API}/tasks/add/pause", json=note)).status_code == 200
    assert (await http.put(f"{API}/marks/add/k", json=note)).status_code == 204
    assert (await http.post(f"{API}/runs/{run}/retry", json=note)).status_code == 201
    operation = {"action": "cancel", "filter": {"task": ["add"]}, "dry_run": True}
    assert (await http.post(f"{API}/operations", json=operation)).status_code == 200
    retried, mark, paused, cancelled = await entries(app)
    assert (cancelled.action, cancelled.subjects, cancelled.changed) == ("runs.cancel", (run,), 1)
    assert (cancelled.by, cancelled.via, cancelled.request, cancelled.note) == (
        "operator",
        "http",
        "mine-1",
        "too many",
    )
    assert (paused.action, mark.action, mark.subjects, retried.action) == (
        "tasks.pause",
        "marks.set",
        ("add k",),
        "runs.retry",
    )
    assert {one.note for one in (paused, mark, retried)} == {"too many"}


async def test_what_was_refused_is_kept_too_but_not_without_end(app: Rota, caller: Caller) -> None:
    viewer = caller("viewer")
    for _ in range(40):
        assert (await viewer.post(f"{API}/tasks/add/pause", json={})).status_code == 403
    found = await entries(app)
    assert len(found) == 30
    assert (found[0].by, found[0].action, found[0].subjects) == ("viewer", "tasks.pause", ("add",))
    assert (found[0].result, found[0].changed) == ("403 not allowed", 0)


async def test_programs_are_audited_when_they_lack_a_right(app: Rota, caller: Caller) -> None:
    viewer, limited = caller("viewer"), caller("submitter:greet")
    assert (await viewer.post(f"{API}/runs", json={"task": "add"})).status_code == 403
    assert (await viewer.post(f"{API}/claim", json={"worker": "w", "n": 1, "tasks": ["add"]})).status_code == 403
    assert (await limited.post(f"{API}/runs", json={"task": "add", "args": {"a": 1}})).status_code == 403
    assert (await limited.post(f"{API}/runs", json={"task": "greet", "args": {"user": "ada"}})).status_code == 201
    assert (await limited.post(f"{API}/runs", json={"task": "greet", "args": {"user": "ada"}})).status_code == 409
    found = [(one.by, one.action, one.result) for one in reversed(await entries(app))]
    assert found == [
        ("viewer", "runs.post", "403 not allowed"),
        ("viewer", "claim.post", "403 not allowed"),
        ("submitter", "runs.post", "403 not allowed"),
    ]


async def test_every_change_of_a_schedule_and_of_a_task_is_audited(app: Rota, caller: Caller) -> None:
    http = caller("admin")
    hourly = {"trigger": "cron 0 * * * * UTC", "task": "add", "args": {"a": 1}}
    assert (await http.put(f"{API}/schedules/s", json=hourly)).status_code == 201
    paused = await http.post(f"{API}/schedules/s/pause", json={"until": "2099-01-01T00:00:00Z", "note": "deploy"})
    assert told(paused) == {"changed": True}
    assert (await http.post(f"{API}/audit/{paused.headers['Rota-Audit']}/undo", json={})).json()["done"] == 1
    for verb, body in (("pause", {"until": "2099-01-01T00:00:00Z"}), ("resume", {}), ("pause", {}), ("resume", {})):
        assert told(await http.post(f"{API}/schedules/s/{verb}", json=body)) == {"changed": True}
    run = await http.post(f"{API}/schedules/s/run-now", json={})
    assert (await http.delete(f"{API}/schedules/s")).status_code == 204
    assert (await http.put(f"{API}/tasks/resize", json={"note": "new"})).status_code == 201
    operation = {"action": "cancel", "filter": {"task": ["add"]}, "dry_run": False, "expect": 1}
    assert (await http.post(f"{API}/operations", json=operation)).status_code == 202
    found = list(reversed(await entries(app)))
    assert [one.action for one in found] == [
        "schedules.put",
        "schedules.pause",
        "schedules.resume",  # the undo: the first of its two questions changes nothing
        "schedules.resume",
        *["schedules.pause", "schedules.resume"] * 2,
        "runs.run_now",
        "schedules.delete",
        "tasks.put",
        "operations.start",
    ]
    assert [one.changed for one in found] == [1, 1, 0, *[1] * 9]
    assert (found[1].note, found[-4].subjects, found[-2].note) == ("deploy", (run.json()["run"],), "new")


async def test_the_audit_is_read_by_filter_page_by_page_and_as_lines(app: Rota, caller: Caller) -> None:
    http = caller("admin")
    for task in ("add", "greet"):
        for verb in ("pause", "resume"):
            await http.post(f"{API}/tasks/{task}/{verb}", json={})
    await caller("operator").post(f"{API}/tasks/add/pause", json={})

    async def actions(**query: str) -> list[str]:
        found = (await http.get(f"{API}/audit", params=query)).json()["items"]
        return [f"{one['action']} {one['subjects'][0]}" for one in found]

    assert len(await actions()) == 5
    assert await actions(by="operator") == ["tasks.pause add"]
    assert await actions(subject="greet") == ["tasks.resume greet", "tasks.pause greet"]
    assert await actions(action="tasks.resume") == ["tasks.resume greet", "tasks.resume add"]
    assert await actions(action="runs") == await actions(since="2999-01-01T00:00:00Z") == []
    first = (await http.get(f"{API}/audit", params={"limit": 3})).json()
    rest = (await http.get(f"{API}/audit", params={"limit": 3, "cursor": first["next"]})).json()
    assert (len(first["items"]), len(rest["items"]), rest["next"]) == (3, 2, None)
    assert (await http.get(f"{API}/audit", params={"cursor": "x"})).status_code == 422
    lines = (await http.get(f"{API}/audit/export")).text.splitlines()
    assert [json.loads(line) for line in lines] == first["items"] + rest["items"]
    limited = caller("operator:add")
    assert [one["by"] for one in (await limited.get(f"{API}/audit")).json()["items"]] == ["operator"]


def test_the_command_line_is_audited_and_shows_the_audit(tmp_path: Path) -> None:
    def rota(*words: str) -> str:
        command = [sys.executable, "-m", "rota", *words, "--url", f"sqlite:///{tmp_path}/rota.db"]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True).stdout

    rota("marks", "set", "add", "k", "--unknown-ok")
    rota("freeze", "--note", "upgrade")
    found = [json.loads(line) for line in rota("audit", "--json").splitlines()]
    assert [(one["action"], one["subjects"], one["via"], one["note"]) for one in found] == [
        ("store.freeze", [], "cli", "upgrade"),
        ("marks.set", ["add k"], "cli", None),
    ]
    assert "@" in found[0]["by"]
    assert rota("audit", "--action", "marks").count("\n") == 2
