"""Opening a Redis store: what is checked, what is said, and what an operator has to allow."""

import logging
import re
from pathlib import Path

import pytest

from rota import StoreUnavailable
from rota.domain.lifecycle import Succeeded
from rota.store import Retention
from rota.stores.redis import RedisBackend
from storekit.contract import new_run
from storekit.servers import RedisServer, redis_of_wheel, valkey_of_wheel
from storekit.servers.places import free_port
from tests.stores.redis_stages import at, staged

PAGE = Path(__file__).parents[2] / "docs" / "redis.md"


def documented_acl(namespace: str, modern: bool) -> list[str]:
    """The rules that docs/redis.md gives, for this namespace."""
    (line,) = re.findall(r"^ACL SETUSER rota (.*)$", PAGE.read_text(), re.MULTILINE)
    words = line.replace("{rota}", f"{{{namespace}}}").split()
    new = ("+client|", "+fcall", "+function|", "+sort_ro")
    return [word for word in words if modern or not word.startswith(new)]


async def test_a_server_that_is_not_there_is_named_without_its_password() -> None:
    backend = RedisBackend.from_url(f"redis://ada:secret@127.0.0.1:{free_port()}")
    with pytest.raises(StoreUnavailable, match=r"redis://ada:\*\*\*@127.0.0.1:\d+ cannot be reached") as refused:
        async with backend.open():
            pass
    assert refused.value.passing
    assert "secret" not in str(refused.value)


async def test_no_sentinel_and_no_node_are_named_as_well() -> None:
    for url in (f"redis+sentinel://127.0.0.1:{free_port()}/prim", f"redis+cluster://127.0.0.1:{free_port()}"):
        with pytest.raises(StoreUnavailable, match="cannot be reached"):
            async with RedisBackend.from_url(url).open():
                pass


async def test_a_server_that_may_lose_runs_is_warned_about_once_and_refused_when_strict(
    caplog: pytest.LogCaptureFixture,
) -> None:
    forgetful = {"appendonly": "no", "maxmemory-policy": "allkeys-lru", "maxmemory": "100mb"}
    with RedisServer(redis_of_wheel(), forgetful) as server:
        backend = at(server.url, "n")
        with caplog.at_level(logging.WARNING):
            for _ in range(2):
                async with backend.open():
                    pass
        said = [record.getMessage() for record in caplog.records]
        assert [("allkeys-lru" in words, "appendonly is off" in words) for words in said] == [
            (True, False),
            (False, True),
        ]
        with pytest.raises(StoreUnavailable, match="set noeviction") as refused:
            async with at(server.url, "n", strict="true").open():
                pass
        assert not refused.value.passing


async def test_a_careful_server_is_opened_without_a_word(
    valkey: RedisServer, namespace: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with at(valkey.url, namespace, strict="true").open():
        pass
    assert not caplog.records


def test_the_documented_acl_names_every_command_of_the_scripts() -> None:
    scripts = [path.read_text() for path in (PAGE.parents[1] / "src/rota/stores/redis/lua").rglob("*.lua")]
    used = {word.lower() for text in scripts for word in re.findall(r'\b(?:call|send)\("([A-Z]+)"', text)}
    assert len(used) > 30
    assert {f"+{command}" for command in used} <= {*documented_acl("n", modern=True)}


async def test_the_documented_acl_is_enough_and_without_channels_workers_poll(namespace: str) -> None:
    for program in (redis_of_wheel(), valkey_of_wheel()):
        with RedisServer(program, tcp=True) as server:
            server.send("ACL", "SETUSER", "rota", *documented_acl(namespace, program.major >= 7))
            url = server.url.replace("redis://", "redis://rota:secret@")
            backend = at(url, namespace)
            async with staged(backend) as stage:
                run = await stage.running(new_run(unique="done", key="k"))
                async with stage.listening() as ear:
                    await stage.end(run, Succeeded())
                    assert run.id in await ear.runs()
                await stage.store.sweep(Retention())
                await stage.store.depths()
            assert backend.poll == 5.0
            server.send("ACL", "SETUSER", "rota", "resetchannels")
            deaf = at(url, namespace)
            async with deaf.open():
                assert deaf.poll == 1.0


async def test_a_login_that_is_refused_is_no_passing_trouble() -> None:
    with RedisServer(valkey_of_wheel(), tcp=True) as server:
        server.send("CONFIG", "SET", "requirepass", "deep")
        for url in (server.url, server.url.replace("redis://", "redis://:wrong@")):
            with pytest.raises(StoreUnavailable, match="login") as refused:
                async with RedisBackend.from_url(url).open():
                    pass
            assert not refused.value.passing
