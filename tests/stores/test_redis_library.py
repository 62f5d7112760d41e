"""The library: verbs as functions that a server keeps, beside scripts for servers and users without them."""

import asyncio
import itertools
import re

import pytest

from rota.domain.lifecycle import Succeeded
from rota.domain.run import State
from rota.stores.redis import client
from rota.stores.redis.library import Library, library
from rota.stores.redis.scripts import flag, shared_source, source, verbs
from storekit.contract import Stage, new_run
from storekit.servers import RedisServer, redis_of_wheel, valkey_of_wheel
from tests.stores.redis_stages import at, staged
from tests.stores.test_redis_opening import documented_acl
from tests.stores.test_redis_traffic import calls

_numbers = itertools.count()


def libraries(server: RedisServer) -> set[str]:
    return set(re.findall(r"rota_[0-9a-f]{16}(?=[^_0-9a-f])", str(server.send("FUNCTION", "LIST"))))


def other_version(number: int) -> Library:
    """The library as another version of rota has it: the same verbs under other names."""
    mine, name = library(), f"rota_{number:016x}"
    functions = {verb: f"{name}_{verb}" for verb in mine.functions}
    return Library(name, mine.text.replace(mine.name, name), functions)


async def a_whole_run(stage: Stage) -> None:
    await stage.end(run := await stage.running(new_run(), f"worker-{next(_numbers)}"), Succeeded())
    assert (await stage.see(run)).state is State.SUCCEEDED


def test_each_verb_is_a_function_with_the_flag_of_its_script() -> None:
    text = library().text
    for verb, function in library().functions.items():
        flags = f', flags = {{ "{flag(verb)}" }}' if flag(verb) else ""
        assert f'function_name = "{function}"{flags}, callback' in text
    assert set(library().functions) == set(verbs())
    assert text.startswith(f"#!lua name={library().name}\n")


def test_shared_files_keep_nothing_from_one_call_to_the_next() -> None:
    """What a line of a shared file sets, and a function changes, has to be set anew in each call of the library."""
    modules = {module for verb in verbs() for module in source(verb)[0]}
    kept = {
        (module, name)
        for module in modules
        for names in re.findall(
            r"^local ([a-z]\w*(?:, \w+)*)(?: =.*)?(?<! -- anew)$", shared_source(module), re.MULTILINE
        )
        for name in names.split(", ")
    }
    own_tables = {(module, module) for module in modules}
    assert kept - own_tables <= {("policies", "override_row"), ("book", "form_fields")}, "constants only"


async def test_a_server_gets_the_library_once_and_no_script() -> None:
    with RedisServer(valkey_of_wheel()) as server:
        for _ in range(2):
            async with staged(at(server.url, "n")) as stage, staged(at(server.url, "m")) as other:
                await asyncio.gather(a_whole_run(stage), a_whole_run(other))
        assert libraries(server) == {library().name}
        assert calls(server, "evalsha") == calls(server, "eval") == 0
        loads = server.info("commandstats")["cmdstat_function|load"]
        assert "failed_calls=0" in loads or int(loads.split("calls=")[1].split(",")[0]) == 2, "both may load it at once"


async def test_the_library_comes_back_after_somebody_removed_it() -> None:
    with RedisServer(valkey_of_wheel()) as server:
        async with staged(at(server.url, "n")) as stage:
            await a_whole_run(stage)
            server.send("FUNCTION", "FLUSH")
            await asyncio.gather(a_whole_run(stage), stage.put(new_run("other"), new_run("other")))
        assert libraries(server) == {library().name}
        assert calls(server, "evalsha") == 0


async def test_two_versions_serve_one_namespace_side_by_side(monkeypatch: pytest.MonkeyPatch) -> None:
    with RedisServer(valkey_of_wheel()) as server:
        async with staged(at(server.url, "n")) as mine:
            await a_whole_run(mine)
            with monkeypatch.context() as patch:
                patch.setattr(client, "library", lambda: other_version(1))
                async with staged(at(server.url, "n")) as theirs:
                    await a_whole_run(theirs)
            await a_whole_run(mine)
        assert libraries(server) == {library().name, other_version(1).name}


async def test_old_versions_are_removed_and_one_that_still_works_comes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    with RedisServer(valkey_of_wheel()) as server:
        async with staged(at(server.url, "n")) as mine:
            await a_whole_run(mine)
            for number in range(client.LIBRARIES_KEPT):
                with monkeypatch.context() as patch:
                    patch.setattr(client, "library", lambda number=number: other_version(number))
                    async with staged(at(server.url, "n")) as theirs:
                        await a_whole_run(theirs)
            last = other_version(client.LIBRARIES_KEPT - 1).name
            assert libraries(server) == {last}, "the last one made room"
            await a_whole_run(mine)
        assert libraries(server) == {library().name, last}
        assert calls(server, "evalsha") == 0


@pytest.mark.parametrize("denied", ["fcall", "function|load"])
async def test_a_user_who_may_not_use_functions_sends_scripts(denied: str) -> None:
    with RedisServer(valkey_of_wheel(), tcp=True) as server:
        rules = [rule for rule in documented_acl("n", modern=True) if rule != f"+{denied}"]
        server.send("ACL", "SETUSER", "rota", *rules)
        url = server.url.replace("redis://", "redis://rota:secret@")
        async with staged(at(url, "n")) as stage:
            await a_whole_run(stage)
            before = calls(server, "fcall"), server.info("commandstats").get("cmdstat_function|load")
            await a_whole_run(stage)
            assert (calls(server, "fcall"), server.info("commandstats").get("cmdstat_function|load")) == before
        assert libraries(server) == set()


async def test_a_full_server_that_has_no_library_yet_still_serves_what_needs_no_memory() -> None:
    with RedisServer(valkey_of_wheel()) as server:
        async with staged(at(server.url, "n")) as stage:
            run = await stage.running(new_run())
            server.send("FUNCTION", "FLUSH")
            server.send("CONFIG", "SET", "maxmemory", "1")
            await stage.end(run, Succeeded())
            assert (await stage.see(run)).state is State.SUCCEEDED
        assert libraries(server) == set()


async def test_a_server_without_functions_gets_scripts() -> None:
    with RedisServer(redis_of_wheel()) as server:
        async with staged(at(server.url, "n")) as stage:
            await a_whole_run(stage)
        assert calls(server, "evalsha") > 0
