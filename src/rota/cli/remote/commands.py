"""Commands over HTTP: which of them a service can answer, and how."""

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

from rota.cli import FAILED, OK
from rota.cli.deploy import lint, settings
from rota.cli.doctor.doctor import doctor
from rota.cli.flows import commands as flows
from rota.cli.flows import marks
from rota.cli.forecast.cron import cron
from rota.cli.options.arguments import gather
from rota.cli.options.times import read_until, seconds_of
from rota.cli.options.user import confirm
from rota.cli.remote.listing import filter_query, instant_text, listed
from rota.cli.render.show import Column, Record, Show, columns
from rota.cli.render.text import plural
from rota.cli.runs import acting, stats
from rota.cli.runs import commands as runs
from rota.cli.runs.filters import EVERY
from rota.cli.runs.submit import submit
from rota.cli.runs.undo import show_undone, undo
from rota.cli.runs.why import why_not
from rota.cli.schedules import commands as schedules
from rota.cli.schedules import control
from rota.cli.serve.serve import serve
from rota.cli.tasks import commands as tasks
from rota.cli.worker import workers
from rota.cli.worker.dev import dev
from rota.cli.worker.worker import worker
from rota.client.operations import Operated
from rota.client.service import API, Service, path_part
from rota.errors import InvalidOptions, ServiceError
from rota.settings import load as project

Given = Mapping[str, Any]
Remote = Callable[[Service, Given, Show], int | None]

LOCAL = (worker, dev, serve, cron, settings.show_settings, lint.lint_schedules)
"""Commands that do not reach for a store, or that are the service or the worker themselves."""
LOCAL_MODULES = ("rota.cli.tree", "rota.cli.serve.", "rota.cli.demo.", "rota.cli.mcp.")
WAIT = 60.0
"""Seconds of one request that waits for a run."""


def remotely(command: Callable[..., Any], given: Given, show: Show, server: str, words: Sequence[str]) -> int | None:
    """Carry out `command` by the service; None if it is a command for this machine."""
    if command in LOCAL or command.__module__.startswith(LOCAL_MODULES):
        return None
    known = COMMANDS.get(command)
    if known is None:
        name = " ".join(["rota", *words])
        raise InvalidOptions(
            f"{name} needs the store itself, and ROTA_SERVER names a service: give --url, or unset ROTA_SERVER"
        )
    return known(Service(server, os.environ.get("ROTA_TOKEN")), given, show) or OK


def _runs(service: Service, given: Given, show: Show) -> None:
    if given.get("following") is not None:
        raise InvalidOptions("--next needs the store itself: give --url, or unset ROTA_SERVER")
    query = filter_query(given.get("filter", EVERY)) | {"limit": given.get("limit", 20), "cursor": given.get("cursor")}
    page = service.send("GET", f"{API}/runs", query=query).json()
    fields = ("task", "key", "state", "created_at", "due_at", "finished_at", "reason")
    show.records(page["items"], [Column("id", whole=True), *columns(*fields)], "No runs.")
    if page.get("searched_back_to"):
        show.note(f"searched back to {page['searched_back_to']}")
    if page["next"]:
        show.note(f"more: --cursor {page['next']}")


def _stats(service: Service, given: Given, show: Show) -> None:
    since = str(given.get("since", "1h"))
    begin = datetime.fromisoformat(instant_text(since, "--since"))
    query = {name: given[name] for name in ("every", "task", "origin", "group_by") if given.get(name)}
    query = {"every": "all"} | query | {"minutes": max(1, int((datetime.now(UTC) - begin).total_seconds() // 60) + 1)}
    page = service.send("GET", f"{API}/stats", query=query).json()
    show.records(page["items"], stats.COLUMNS, stats.NOTHING)


def _one(path: str) -> Remote:
    def show_one(service: Service, given: Given, show: Show) -> None:
        found = service.send("GET", f"{API}/{path}/{path_part(next(iter(given.values())))}").record()
        show.document(found, lambda: _lines(found))

    return show_one


def _lines(found: Record) -> str:
    return "\n".join(f"{name}: {Column(name).text(found)}" for name in found)


def _act(action: str) -> Remote:
    def act(service: Service, given: Given, show: Show) -> None:
        ids = given.get("ids", ())
        if not ids:
            _operate(service, action, given, show)
            return
        method, end = ("DELETE", "") if action == "delete" else ("POST", f"/{action}")
        note = given.get("note")
        answers: list[dict[str, object]] = []
        for id in ids:
            path = f"{API}/runs/{path_part(id)}{end}"
            body, query = ({"note": note}, None) if method == "POST" else (None, {"note": note})
            done: dict[str, object] = service.send(method, path, body, query).record() or {"deleted": True}
            answers.append({"id": id, **done})
        show.records(answers, [Column(name, whole=True) for name in answers[0]])

    return act


def _operate(service: Service, action: str, given: Given, show: Show) -> None:
    """Act on all that match: count them, ask, and say the number along."""
    query = filter_query(given.get("filter", EVERY))
    if not query:
        raise InvalidOptions("give ids of runs, or a filter such as --task and --state")
    body = {"action": action, "filter": query, "note": given.get("note")}
    found = service.send("POST", f"{API}/operations", body | {"dry_run": True}).json()
    matched = int(found["matched"])
    if matched and not given.get("yes"):
        words = plural(matched, "run")
        asyncio.run(confirm(f"{action} {words}?", "nothing has changed", f"this would {action} {words}"))
    done = service.send("POST", f"{API}/operations", body | {"dry_run": False, "expect": matched}).record()
    show.document(done, lambda: _lines(done))


def _logs(service: Service, given: Given, show: Show) -> None:
    found = service.send("GET", f"{API}/runs/{path_part(given['id'])}/log").json()["items"]
    runs.write_logs(show, found, bool(given.get("last")))


def _undo(service: Service, given: Given, show: Show) -> None:
    """Undo an operation; else what an audit entry tells of."""
    id, note = path_part(given["id"]), {} if given.get("note") is None else {"note": given["note"]}
    try:
        done = service.send("POST", f"{API}/operations/{id}/undo", note).record()
        show.document(done, lambda: _lines(done))
    except ServiceError as error:
        if error.status != 404:
            raise
        undone = service.send("POST", f"{API}/audit/{id}/undo", note).json()
        show_undone(show, Operated(undone["done"], undone["skipped"]))


def _why(service: Service, given: Given, show: Show) -> None:
    query = {"subject": given["subject"], "key": given.get("key")}
    answer = service.send("GET", f"{API}/why", query=query).record()
    if show.json:
        show.value(answer)
        return
    show.sentence(f"{answer.get('kind', '')} {answer.get('subject', '')}: {answer['answer']}".strip())
    for fact in answer.get("facts", ()):
        show.sentence(f"{'!' if fact['holds'] else '-'} {fact['about']}: {fact['text']}", hanging=2)


def _named(path: str, action: str, method: str = "POST") -> Remote:
    """Act on each named task, or on the one schedule or worker."""

    def act(service: Service, given: Given, show: Show) -> None:
        first = given.get("name", given.get("id"))
        note = {name: given[name] for name in ("note", "key") if given.get(name) is not None}
        if given.get("unknown_ok"):
            raise InvalidOptions("--unknown-ok needs the store itself: give --url, or unset ROTA_SERVER")
        answers: list[dict[str, object]] = []
        for name in (first, *given.get("names", ())):
            thing = f"{API}/{path}/{path_part(str(name))}"
            if given.get("until"):
                note["until"] = _until(service, thing, given["until"])
            where = f"{thing}/{action}" if method == "POST" else thing
            answer = service.send(method, where, note if method == "POST" else None, None if method == "POST" else note)
            answers.append({"name": name} | answer.record())
        show.records(answers, [Column(each, whole=True) for each in answers[0]])

    return act


def _until(service: Service, thing: str, text: str) -> str:
    """Return --until as an instant. `2h` begins now by the store's clock. A time is one in the zone of the schedule,
    and for a task in that of the project, as without a service."""
    seen = service.send("GET", thing).json()
    now = datetime.fromisoformat(seen["now"]).timestamp()
    return read_until(text, "--until", ZoneInfo(seen.get("zone") or project().tz), now).isoformat()


SUBMIT = ("id", "at", "key", "unique", "join", "queue", "priority", "retry", "lost")
"""The options of `rota submit` that go into the body as they are."""


def _submit(service: Service, given: Given, show: Show) -> int | None:
    spans = {name: given.get(name) for name in ("delay", "expires", "run_timeout", "within")}
    body: dict[str, object] = {
        "task": given["task"],
        "args": gather(given.get("values", ()), given.get("args"), {}).named,
        "timeout": seconds_of(spans["run_timeout"], "--run-timeout"),
        "delay": seconds_of(spans["delay"], "--delay"),
        "expires": seconds_of(spans["expires"], "--expires"),
        "within": seconds_of(spans["within"], "--within"),
        "headers": dict(part.split("=", 1) for part in given.get("header") or ()) or None,
        **{name: given[name] for name in SUBMIT if name in given},
    }
    sent = {name: value for name, value in body.items() if value is not None}
    made = service.send("POST", f"{API}/runs", sent | {"unknown_ok": bool(given.get("unknown_ok"))}).record()
    if not given.get("wait"):
        if show.json:
            show.value(made)
        else:
            show.line(made["run"])
        return OK
    run = service.send("GET", f"{API}/runs/{made['run']}", query={"wait": WAIT}, wait=WAIT).json()
    show.value(run["result"])
    return OK if run["state"] == "succeeded" else FAILED


def _list(path: str, *fields: str) -> Remote:
    def show_all(service: Service, given: Given, show: Show) -> None:
        query = {"task": given["task"]} if given.get("task") else {}
        items = listed(service, f"{API}/{path}", query)
        show.records(items, columns(*fields), f"No {path}.")

    return show_all


def _doctor(service: Service, given: Given, show: Show) -> None:
    found = service.send("GET", f"{API}/doctor").json()
    show.document(found, lambda: _lines(found))


COMMANDS: dict[Callable[..., Any], Remote] = {
    runs.ls: _runs,
    runs.show_run: _one("runs"),
    runs.show_logs: _logs,
    acting.retry: _act("retry"),
    acting.cancel: _act("cancel"),
    acting.pause: _act("pause"),
    acting.resume: _act("resume"),
    acting.delete: _act("delete"),
    undo: _undo,
    stats.stats: _stats,
    submit: _submit,
    why_not: _why,
    tasks.ls: _list("tasks", "task", "executor", "queued", "running", "paused", "description"),
    tasks.pause: _named("tasks", "pause"),
    tasks.resume: _named("tasks", "resume"),
    schedules.ls: _list("schedules", "id", "task", "trigger", "next_at", "paused"),
    schedules.show_schedule: _one("schedules"),
    control.pause: _named("schedules", "pause"),
    control.resume: _named("schedules", "resume"),
    control.run_now: _named("schedules", "run-now"),
    control.delete: _named("schedules", "", "DELETE"),
    workers.ls: _list("workers", "name", "standing", "host", "pid", "seats", "tasks", "seen_at"),
    workers.quiet: _named("workers", "quiet"),
    workers.resume: _named("workers", "resume"),
    workers.stop: _named("workers", "stop"),
    flows.ls: _list("flows", "flow", "steps"),
    flows.show_flow: _one("flows"),
    marks.ls: _list("marks", "task", "key", "succeeded_at"),
    doctor: _doctor,
}
