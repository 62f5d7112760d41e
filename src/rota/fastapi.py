"""rota in a FastAPI app, or any app of Starlette: its engine runs with the server, and requests submit runs.

app = Rota()
api = FastAPI()
rota.fastapi.install(api, app)
"""

import logging
from collections.abc import AsyncGenerator, Callable
from typing import Annotated, Any, ParamSpec, TypeAlias, cast

from rota.app.app import Rota
from rota.app.core import core_of
from rota.app.registry import AnyTask
from rota.errors import InvalidOptions, MissingExtra
from rota.task import Bound, Task

try:
    from fastapi import Depends
    from starlette.applications import Starlette
    from starlette.requests import HTTPConnection
    from starlette.types import ASGIApp, Receive, Scope, Send

    from rota.web.gate import Auth
    from rota.web.lifespans import Lifespan, composed
    from rota.web.service import asgi
except ModuleNotFoundError as error:
    missing = (error.name or "").partition(".")[0]
    raise MissingExtra(f'rota.fastapi needs {missing}: pip install "rota[fastapi]"') from None

__all__ = ["Tasks", "get", "install", "lifespan"]

log = logging.getLogger("rota.web")
P = ParamSpec("P")


def lifespan(app: Rota, inner: Lifespan | None = None, outer: Lifespan | None = None) -> Lifespan:
    """Return a lifespan for `FastAPI(lifespan=…)`, Starlette and Litestar: the engine of `app` runs while the server
    serves.

    `inner` is a lifespan of your own that starts after the engine and stops before it; `outer` the other way round.
    What they yield is merged into one state.
    """
    return composed(app, inner, outer)


def install(api: Starlette, app: Rota, at: str | None = "/rota", auth: Auth | None = None) -> None:
    """Join `app` to a FastAPI or Starlette app that exists: its lifespan runs the engine too, `get` and `Tasks` find
    `app`, handlers take the `dependency_overrides` of `api`, and the service is mounted under `at`.

    `auth(scope)` says who may call the service; without it nobody, see `rota.web.asgi`. With `at=None` nothing is
    mounted.
    """
    if getattr(api.state, "rota", app) is not app:
        raise InvalidOptions("another app of rota is installed here; mount a second one with rota.web.asgi")
    if getattr(api.state, "rota", None) is app:
        return
    if at is not None and (not at.startswith("/") or at.endswith("/")):
        raise InvalidOptions(f"at={at!r}: a path such as /rota, or None")
    api.state.rota = app
    api.router.lifespan_context = composed(app, api.router.lifespan_context)
    core_of(app).overrides.append(lambda: getattr(api, "dependency_overrides", {}))
    api.add_middleware(_Requests, app=app)
    if at is not None:
        api.mount(at, asgi(app, auth), name="rota")


async def get(connection: HTTPConnection) -> Rota:
    """Return the app of rota that is installed in the FastAPI app of this request, else the app of this process:
    `app: Annotated[Rota, Depends(rota.fastapi.get)]`. In a handler it is the app of this process."""
    found = getattr(connection.app.state, "rota", None)
    return found if isinstance(found, Rota) else Rota.current()


get.__rota_depends__ = Rota.current  # type: ignore[attr-defined]


class TaskList:
    """What a request wants done after it: `tasks.add_task(send, "ada", subject="hello")`."""

    def __init__(self, app: Rota) -> None:
        self._app = app
        self._calls: list[Bound[Any]] = []

    def add_task(self, task: Task[..., P, Any, Any] | Callable[P, Any], /, *args: P.args, **kwargs: P.kwargs) -> None:
        """Submit `task` when the path function has returned. Wrong arguments raise here."""
        found = cast("AnyTask", task) if isinstance(task, Task) else _task_of(self._app, task)
        self._calls.append(found.bind(*args, **kwargs))

    async def submit(self) -> None:
        """Submit all that was added, in one transaction."""
        calls, self._calls = self._calls, []
        if calls:
            await self._app.submit_many(calls)


def _task_of(app: Rota, fn: Callable[..., Any]) -> AnyTask:
    for task in app.tasks.values():
        if task.fn is fn:
            return task
    name = getattr(fn, "__qualname__", fn)
    raise InvalidOptions(f"{name} is no task, so that no worker could find it; decorate it with @app.task")


async def _tasks(app: Annotated[Rota, Depends(get)]) -> AsyncGenerator[TaskList]:
    tasks = TaskList(app)
    yield tasks
    await tasks.submit()  # not after an exception of the path function


Tasks: TypeAlias = Annotated[TaskList, Depends(_tasks, scope="function")]
"""FastAPI's `BackgroundTasks`, kept by the store: `async def post(tasks: Tasks): tasks.add_task(send, "ada")`.

The runs are submitted when the path function has returned and before the response leaves: whoever has the response
knows that the work is kept, also if this process dies now. A store that does not answer makes the response an error.
"""


class _Requests:
    """Around every request: where no lifespan has run, opens the store for the request and closes it again."""

    def __init__(self, inner: ASGIApp, app: Rota) -> None:
        self._inner = inner
        self._app = app
        self._warned = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan" or core_of(self._app).served:
            await self._inner(scope, receive, send)
        else:
            self._warn(scope)
            async with self._app.client():
                await self._inner(scope, receive, send)

    def _warn(self, scope: Scope) -> None:
        if self._warned or core_of(self._app).lifecycle.running is not None:
            return
        self._warned = True
        mounted = scope.get("root_path", "") != scope.get("app_root_path", scope.get("root_path", ""))
        why = (
            f"it is mounted at {scope['root_path']}, and servers run the lifespan of the outermost app only: call "
            "rota.fastapi.install for that app"
            if mounted
            else "the server or the test sends none"
        )
        log.warning("no engine runs in this process, runs are only submitted: the lifespan did not run, %s", why)
