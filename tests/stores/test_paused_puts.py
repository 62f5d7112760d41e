"""A schedule that is put paused fires nothing, from the step that adds it on; on every store."""

from pathlib import Path

import pytest

from rota import Every, Rota
from rota.store import Backend, ClaimRequest, Store
from rota.stores.memory import MemoryBackend
from rota.stores.sqlite import SqliteBackend
from tests.stores.redis_stages import at


@pytest.fixture(params=["memory", "sqlite", "redis", "postgres"])
def backend(request: pytest.FixtureRequest, tmp_path: Path, namespace: str) -> Backend:
    found: Backend
    match request.param:
        case "memory":
            found = MemoryBackend()
        case "sqlite":
            found = SqliteBackend(tmp_path / "rota.db")
        case "redis":
            found = at(request.getfixturevalue("valkey").url, namespace)
        case _:
            found = request.getfixturevalue("postgres_backend")
    return found


async def test_a_schedule_is_added_paused_and_stays_so_until_it_is_resumed(backend: Backend) -> None:
    app = Rota(backend)
    work = app.task(name="work")(lambda: None)
    claims = 0

    async def due(store: Store) -> list[str]:
        nonlocal claims
        claims += 1
        backend.skew += 61
        found = (await store.claim(ClaimRequest("ada", claims, ["work"], 1, 30))).schedules
        return [schedule.id for schedule in found if schedule.deadline is None]

    async with app.client() as client:
        store = await client.store()
        put = await app.schedules.put("s", Every(60), work.bind(), paused=True, expect="07:00")
        assert (put.paused, put.version) == (True, 1)
        assert (await app.schedules.get("s")).next_at is not None
        assert not (await app.schedules.get("expect:s")).paused, "a resume would not reach its deadline"
        assert await due(store) == []
        again = await app.schedules.put("s", Every(30), work.bind())
        assert again.paused, "whoever puts it again does not resume it"
        assert await due(store) == []
        assert await app.schedules.resume("s")
        assert await due(store) == ["s"]
        held = await app.schedules.put("s", Every(60), work.bind(), paused=True)
        assert held.paused
        assert await due(store) == []
