"""PostgreSQL: it starts, answers, keeps its data and leaves nothing behind."""

import asyncio
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import asyncpg
import pytest

from storekit.servers import HasUrl, PostgresServer, ServerFailed, postgres_of_machine, postgres_of_wheel
from tests.servers.watching import all_gone, family

MACHINES = {f"postgres-{programs.major}": programs for programs in postgres_of_machine()}


@pytest.fixture(params=["wheel", *MACHINES])
def server(request: pytest.FixtureRequest, postgres_templates: Path) -> Iterator[PostgresServer]:
    programs = MACHINES.get(request.param) or postgres_of_wheel()
    with PostgresServer(programs, template=postgres_templates / f"postgres-{programs.version}") as server:
        yield server


async def read(url: str, statement: str) -> object:
    connection = await asyncpg.connect(url)
    try:
        return await connection.fetchval(statement)
    finally:
        await connection.close()


@pytest.mark.parametrize("end", [PostgresServer.stop, PostgresServer.stop_at_once, PostgresServer.kill])
async def test_it_keeps_its_data_however_it_ends(server: PostgresServer, end: Callable[[PostgresServer], None]) -> None:
    connection = await asyncpg.connect(server.url)
    await connection.execute("CREATE TABLE kept AS SELECT 42 AS n")
    url = server.url
    pids = family(server.pid)
    await asyncio.to_thread(end, server)
    assert await asyncio.to_thread(all_gone, pids)
    connection.terminate()
    await asyncio.to_thread(server.start)
    assert await read(server.url, "SELECT n FROM kept") == 42
    assert server.url == url


def segments() -> set[str]:
    said = subprocess.run(["ipcs", "-m"], capture_output=True, text=True, check=True).stdout
    return {line.split()[1] for line in said.splitlines() if line.startswith("0x")}


@pytest.mark.parametrize("first", ["nothing", "freeze", "kill"])
def test_nothing_is_left_of_it(postgres_templates: Path, first: str) -> None:
    template = postgres_templates / f"postgres-{postgres_of_wheel().version}"
    with PostgresServer(postgres_of_wheel(), template=template) as server:
        pids = family(server.pid)
        memory = (server.folder / "data" / "postmaster.pid").read_text().split("\n")[6].split()[1]
        assert len(pids) > 3
        assert memory in segments()
        if first != "nothing":
            getattr(server, first)()
    assert all_gone(pids, server.folder)
    assert memory not in segments()


async def test_the_wheel_carries_the_version_we_promise(postgres: PostgresServer) -> None:
    assert str(await read(postgres.url, "SHOW server_version")).startswith("18.")


async def test_options_reach_the_server_and_nothing_is_synced_unless_asked(postgres: PostgresServer) -> None:
    assert await read(postgres.url, "SHOW fsync") == "off"
    assert await read(postgres.url, "SHOW synchronous_commit") == "on"
    with PostgresServer(postgres_of_wheel(), {"fsync": "on", "work_mem": "1MB"}, tcp=True) as server:
        assert server.url.startswith("postgresql://rota@127.0.0.1:")
        assert await read(server.url, "SHOW fsync") == "on"
        assert await read(server.url, "SHOW work_mem") == "1MB"


async def test_a_frozen_server_answers_when_it_is_thawed(server: PostgresServer) -> None:
    connection = await asyncpg.connect(server.url)
    await asyncio.to_thread(server.freeze)
    answer = asyncio.create_task(connection.fetchval("SELECT 1"))
    done, _ = await asyncio.wait([answer], timeout=0.2)
    assert not done
    await asyncio.to_thread(server.thaw)
    assert await answer == 1
    await connection.close()


def test_a_server_that_does_not_start_shows_its_log(postgres_templates: Path) -> None:
    template = postgres_templates / f"postgres-{postgres_of_wheel().version}"
    server = PostgresServer(postgres_of_wheel(), {"shared_buffers": "plenty"}, template=template)
    with pytest.raises(ServerFailed, match=r"(?s)ended before it could answer.*shared_buffers.*plenty"), server:
        pass
    assert not server.folder.exists()


async def test_each_kind_answers_through_the_fixture(any_postgres: HasUrl) -> None:
    assert await read(any_postgres.url, "SELECT 1") == 1
