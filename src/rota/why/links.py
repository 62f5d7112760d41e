"""Links: where to read what a fact is about, as a path of the HTTP API below /api/v1."""

from collections.abc import Iterable
from urllib.parse import quote, urlencode

from msgspec.structs import replace

from rota.domain.run import Run
from rota.why.answer import Fact


def linked(facts: Iterable[Fact], task: str, key: str | None, run: Run | None = None) -> tuple[Fact, ...]:
    """Return the facts about a task, a key of it or a run. Those that name something else have their links already."""
    places = _places(task, key) | ({} if run is None else _places_of(run))
    return tuple(fact if fact.link else replace(fact, link=places.get(fact.about)) for fact in facts)


def to_run(id: str) -> str:
    return f"/runs/{_part(id)}"


def to_schedule(id: str) -> str:
    return f"/schedules/{_part(id)}"


def to_period(flow: str, period: str) -> str:
    return f"/flows/{_part(flow)}/periods/{_part(period)}"


def _places(task: str, key: str | None) -> dict[str, str]:
    here = f"/tasks/{_part(task)}"
    about = {"task": task} if key is None else {"task": task, "key": key}
    found: dict[str, str] = dict.fromkeys(("task", "limit", "rate", "override"), here)
    found |= dict.fromkeys(("workers", "clock", "seats"), "/workers")
    found |= {"queue": f"/runs?{urlencode(about)}", "share": f"/runs?{urlencode(about)}"}
    found["decided"] = f"/decisions?{urlencode(about)}"
    return found if key is None else found | {"key": f"{here}/keys?{urlencode({'q': key})}"}


def _places_of(run: Run) -> dict[str, str]:
    found: dict[str, str] = dict.fromkeys(("run", "attempt"), to_run(run.id))
    if run.member is not None and run.member.step:
        flow, _, period = run.member.group.rpartition("@")
        found |= {"flow": to_period(flow, period), "step": to_period(flow, period)}
    if run.origin.kind == "plan" and run.origin.of is not None:
        found["plan"] = f"/plans/{_part(run.origin.of)}?{urlencode({'period': run.origin.period})}"
    return found


def _part(name: str) -> str:
    return quote(name, safe="")
