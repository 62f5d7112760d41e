"""Litestar and Quart: the engine runs with their servers, too."""

from typing import Any

import pytest
from litestar import Litestar, get
from litestar.testing import TestClient
from quart import Quart

import rota.fastapi
from rota import Rota
from rota.web import lifespan


def adding() -> tuple[Rota, Any]:
    app = Rota("memory://")

    async def add(a: int, b: int) -> int:
        return a + b

    return app, app.task(add)


@pytest.mark.parametrize("wrapped", [False, True])
def test_litestar_runs_the_engine_in_its_list_of_lifespans_or_within_ours(wrapped: bool) -> None:
    app, add = adding()

    @get("/")
    async def home() -> int:
        found: int = await (await add.submit(1, 2)).result(timeout=10)
        return found

    site: Any = Litestar([home], lifespan=[] if wrapped else [rota.fastapi.lifespan(app)], logging_config=None)
    served: Any = lifespan(site, app) if wrapped else site
    with TestClient(served) as client:
        assert (client.get("/").json(), app.status().running) == (3, True)
    assert app.status().running is False


@pytest.mark.parametrize("wrapped", [False, True])
async def test_quart_runs_the_engine_by_its_hooks_or_within_ours(wrapped: bool) -> None:
    app, add = adding()
    site: Any = Quart("shop")

    async def home() -> dict[str, int]:
        return {"sum": await (await add.submit(1, 2)).result(timeout=10)}

    site.add_url_rule("/", view_func=home)
    if wrapped:
        site.asgi_app = lifespan(site.asgi_app, app)
    else:
        site.before_serving(app.start)
        site.after_serving(app.stop)
    async with site.test_app() as served:
        answer = await served.test_client().get("/")
        assert (await answer.get_json(), app.status().running) == ({"sum": 3}, True)
    assert app.status().running is False
