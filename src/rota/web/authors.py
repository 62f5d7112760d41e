"""Authors of requests: which requests are audited, and what is kept of those that were refused."""

import time
from collections import Counter
from contextlib import suppress
from typing import Any

from starlette.requests import Request

from rota.client.audit import Author
from rota.client.client import Client
from rota.errors import RotaError, StoreError
from rota.web.problems import TITLES, Problem, problem_of
from rota.web.rights import Principal, Right
from rota.web.routes import API, Route

PROGRAMS = (Right.SUBMIT, Right.WORK)
"""Programs submit, touch, claim and settle all the time: what these rights let a POST do is not audited, unless it is
refused for a missing right."""
FORBIDDEN = 403
REFUSALS = (FORBIDDEN, 409, 412)
MOST_REFUSALS = 30
"""Refusals of a credential in a minute that are kept: nobody can fill the audit with them."""


def author_of(route: Route[Any, Any], request: Request, principal: Principal) -> Author | None:
    """Return the author of a request that may change something; None if it is not audited. The routes of sessions have
    no right: they keep their entries themselves."""
    if route.method == "GET" or route.right is None:
        return None
    address = request.client.host if request.client else None
    return Author(principal.name, "http", request=request.state.request_id, address=address)


def is_audited(route: Route[Any, Any]) -> bool:
    """Return whether the audit tells of what the route has done, and not only of what it has refused."""
    return not (route.method == "POST" and route.right in PROGRAMS)


def action_of(route: Route[Any, Any]) -> str:
    """Return what a route does in two words: `runs.cancel`, `schedules.put`."""
    first, *others = [part for part in route.template.removeprefix(API).split("/") if part]
    last = others[-1] if others else ""
    return f"{first}.{route.method.lower() if not last or last.startswith('{') else last}"


class Refusals:
    """Keeps an audit entry of what was refused to a caller."""

    def __init__(self) -> None:
        self._minute = 0
        self._counts: Counter[str] = Counter()

    async def keep(
        self, client: Client, route: Route[Any, Any], request: Request, author: Author, error: Exception
    ) -> None:
        problem = error if isinstance(error, Problem) else problem_of(error) if isinstance(error, RotaError) else None
        kept = REFUSALS if is_audited(route) else (FORBIDDEN,)
        if problem is None or problem.status not in kept or author.entries or not self._room(author.by):
            return
        result = f"{problem.status} {TITLES[problem.status]}"
        subjects = [str(value)[:1000] for value in request.path_params.values()]
        with suppress(StoreError):
            await client.audit([author.entry(action_of(route), subjects, result=result)])

    def _room(self, by: str) -> bool:
        minute = int(time.monotonic() // 60)
        if minute != self._minute:
            self._minute, self._counts = minute, Counter()
        self._counts[by] += 1
        return self._counts[by] <= MOST_REFUSALS
