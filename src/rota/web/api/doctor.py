"""Doctor: what could be wrong with the service, its store and its settings, and what to do about it."""

import asyncio
from collections.abc import Callable, Iterable
from typing import Any

from rota.app.core import core_of
from rota.doctor.backend_checks import backend_checks
from rota.doctor.checks import Check, Verdict, good, override_checks, program_checks
from rota.domain.text import plural
from rota.views.shapes import listing
from rota.views.values import iso
from rota.web.rights import Right
from rota.web.routes import API, Answer, Call, NoQuery, Route, get

CHECK: dict[str, Any] = {
    "type": "object",
    "properties": {
        "verdict": {"enum": [str(verdict.value) for verdict in Verdict]},
        "check": {"type": "string"},
        "detail": {"type": "string"},
        "advice": {"type": ["string", "null"]},
    },
    "required": ["verdict", "check", "detail", "advice"],
}


async def doctor(call: Call[NoQuery, None]) -> Answer:
    app = call.app
    checks = [*program_checks(), _tasks(len(app.tasks)), *override_checks(app.settings, app.tasks)]
    for more in core_of(app).more_checks:
        checks += await asyncio.to_thread(_listed, more)
    checks += await backend_checks(app.backend)
    return Answer({"items": [check.record() for check in checks], "next": None, "now": iso(await call.client.now())})


def _listed(more: Callable[[], Iterable[Any]]) -> list[Check]:
    return list(more())


def _tasks(count: int) -> Check:
    if not count:
        return Check("app", Verdict.WARN, "the app of the service has no tasks", "define one with @app.task")
    return good("app", f"it has {plural(count, 'task')}")


ROUTES: list[Route[Any, Any]] = [
    # the details name files and servers: not for everybody who may read
    get(f"{API}/doctor", "Checks, with advice", Right.OPERATE, doctor, listing(CHECK)),
]
