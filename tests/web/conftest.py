"""A service over the memory store, and callers with every role."""

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from datetime import datetime

import httpx
import pytest
from starlette.datastructures import Headers
from starlette.types import Scope

from rota import Rota
from rota.web import Principal, asgi
from rota.web.gate import bearer_of
from rota.web.rights import ROLES

HOST = "http://localhost"

Caller = Callable[..., httpx.AsyncClient]


def told(answer: httpx.Response) -> dict[str, object]:
    """Return what a route answers, without the store's time, which every object has that needed the store."""
    found: dict[str, object] = answer.json()
    assert datetime.fromisoformat(str(found.pop("now"))).tzinfo is not None
    return found


def by_role(scope: Scope) -> Principal | None:
    """The token of a test is a role, with the tasks for which it holds: `operator` or `submitter:add,greet`."""
    role, _, tasks = (bearer_of(Headers(scope=scope)) or "").partition(":")
    return Principal(role, ROLES[role], tuple(filter(None, tasks.split(",")))) if role in ROLES else None


@pytest.fixture
def app() -> Rota:
    app = Rota("memory://")

    @app.task
    async def add(a: int, b: int = 1) -> int:
        return a + b

    @app.task(unique="queued", join="refuse", key="{user}")
    async def greet(user: str, password: str = "") -> dict[str, str]:
        if user == "nobody":
            raise ValueError(f"no {user}")
        return {"hello": user, "api_key": "k"}

    return app


@pytest.fixture
async def caller(app: Rota) -> AsyncIterator[Caller]:
    """Make callers: `caller("operator")`; `caller(None)` has no token."""
    async with AsyncExitStack() as opened:
        await opened.enter_async_context(app.client())
        service = asgi(app, by_role, hosts=[])

        def make(role: str | None = "admin", **options: object) -> httpx.AsyncClient:
            headers = {} if role is None else {"Authorization": f"Bearer {role}"}
            transport = httpx.ASGITransport(service, raise_app_exceptions=False)
            return httpx.AsyncClient(transport=transport, base_url=HOST, headers=headers)

        yield make
