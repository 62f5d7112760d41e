"""FastAPI's own dependencies in handlers: the chapters of its tutorial about dependencies, without a request."""

import inspect
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from typing import Annotated, Any

import pytest
from fastapi import BackgroundTasks, Cookie, Depends, FastAPI, Header, HTTPException, Query, Request, Security
from fastapi.security import OAuth2PasswordBearer, SecurityScopes

import rota
from rota import Context, InvalidOptions, Rota, RunFailed
from rota.app.core import core_of

words: list[str] = []


class Session:
    closed = False


async def dependency_a() -> AsyncIterator[str]:
    yield "a"
    words.append("close a")


async def dependency_b(dep_a: Annotated[str, Depends(dependency_a)]) -> AsyncIterator[str]:
    try:
        yield f"{dep_a}b"
    finally:
        words.append(f"close b with {dep_a}")


def dependency_c(dep_b: Annotated[str, Depends(dependency_b)], dep_a: str = Depends(dependency_a)) -> Iterator[str]:
    yield f"{dep_b}c{dep_a}"
    words.append("close c")


def get_session() -> Iterator[Session]:
    session = Session()
    try:
        yield session
    finally:
        session.closed = True


class Pagination:
    """A class as a dependency, whose instances are dependencies as well."""

    def __init__(self, fixed: str = "bar") -> None:
        self.fixed = fixed

    def __call__(self, session: Annotated[Session, Depends(get_session)]) -> str:
        return self.fixed + type(session).__name__


class Repository:
    def __init__(self, session: Annotated[Session, Depends(get_session)]) -> None:
        self.session = session


checker = Pagination("foo")


async def test_the_dependencies_of_fastapi_are_made_nested_cached_and_ended_in_reverse() -> None:
    app = Rota("memory://")
    words.clear()

    @app.task
    async def work(
        number: int,
        chain: Annotated[str, Depends(dependency_c)],
        repository: Annotated[Repository, Depends()],
        session: Annotated[Session, Depends(get_session)],
        checked: str = Depends(checker),
        fresh: Session = Depends(get_session, use_cache=False),
    ) -> list[Any]:
        assert repository.session is session is not fresh
        assert not session.closed
        return [number, chain, checked]

    @app.task
    def plain(number: int, chain: Annotated[str, Depends(dependency_c)]) -> list[Any]:
        return [number, chain]

    async with app:
        assert await (await app.submit("work", 1)).result(timeout=10) == [1, "abca", "fooSession"]
        assert words == ["close c", "close b with a", "close a"]
        words.clear()
        assert await (await app.submit("plain", 2)).result(timeout=10) == [2, "abca"]
        assert words == ["close c", "close b with a", "close a"]
        assert (await app.published("work")).parameters == ("number",)


async def test_an_http_exception_of_a_dependency_fails_the_run() -> None:
    app = Rota("memory://")

    def verify() -> None:
        raise HTTPException(400, "X-Token header invalid")

    @app.task
    async def work(verified: Annotated[None, Depends(verify)]) -> None: ...

    async with app:
        with pytest.raises(RunFailed, match="HTTPException: 400: X-Token"):
            await (await app.submit("work")).result(timeout=10)


async def test_the_overrides_of_a_fastapi_app_count() -> None:
    app, api = Rota("memory://"), FastAPI()
    core_of(app).overrides.append(lambda: api.dependency_overrides)

    @app.task
    async def work(chain: Annotated[str, Depends(dependency_c)]) -> str:
        return chain

    async with app:
        api.dependency_overrides[dependency_a] = lambda: "test-"
        assert await (await app.submit("work")).result(timeout=10) == "test-bctest-"
        app.dependency_overrides[dependency_a] = lambda: "mine-"
        assert await (await app.submit("work")).result(timeout=10) == "mine-bcmine-", "those of the app come first"


oauth2_scheme = OAuth2PasswordBearer(tokenUrl="token")


async def get_current_user(token: Annotated[str, Depends(oauth2_scheme)]) -> str:
    return token


async def common_parameters(q: str | None = None, skip: int = 0, limit: int = 100) -> dict[str, Any]:
    return {"q": q, "skip": skip, "limit": limit}


def query_extractor(q: Annotated[str | None, Query()] = None) -> str | None:
    return q


def query_or_cookie(last: Annotated[str | None, Cookie()] = None, q: str = Depends(query_extractor)) -> str | None:
    return last


def verify_token(x_token: Annotated[str, Header()]) -> None: ...


def scoped(scopes: SecurityScopes) -> None: ...


def with_request(request: Request) -> None: ...


def with_background(tasks: BackgroundTasks | None = None) -> None: ...


@pytest.mark.parametrize(
    ("dependency", "reason"),
    [
        (
            get_current_user,
            "get_current_user → OAuth2PasswordBearer needs a request: its parameter request is of the type",
        ),
        (common_parameters, "common_parameters needs a request: FastAPI reads its parameter q from the query"),
        (query_or_cookie, "query_or_cookie needs a request: its parameter last is of the type Cookie"),
        (verify_token, "verify_token needs a request: its parameter x_token is of the type Header"),
        (scoped, "scoped needs a request: its parameter scopes is of the type SecurityScopes"),
        (with_request, "with_request needs a request: its parameter request is of the type Request"),
        (with_background, "with_background needs a request: its parameter tasks is of the type BackgroundTasks"),
    ],
)
def test_a_dependency_that_needs_a_request_is_refused_at_the_definition(dependency: Any, reason: str) -> None:
    for marker in (Depends(dependency), Security(dependency)):

        async def work(number: int, need: Any = marker) -> None: ...

        with pytest.raises(InvalidOptions, match=f"task work: the dependency {reason}"):
            Rota("memory://").task(work)


async def test_our_depends_takes_the_defaults_of_plain_parameters() -> None:
    app = Rota("memory://")

    @app.task
    async def work(ctx: Context, common: dict[str, Any] = rota.Depends(common_parameters)) -> int:
        return int(common["limit"])

    async with app:
        assert await (await work.submit()).result(timeout=10) == 100


def test_fastapi_is_not_imported_to_recognise_its_dependencies() -> None:
    program = """
        import sys
        from rota import Depends, Rota
        app = Rota("memory://")
        @app.task
        async def work(need: int = Depends(int)) -> None: ...
        assert not {"fastapi", "starlette", "pydantic"} & set(sys.modules)
    """
    subprocess.run([sys.executable, "-c", inspect.cleandoc(program)], check=True)
