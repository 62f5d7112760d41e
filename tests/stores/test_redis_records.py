"""Runs as the Redis store reads them, and scripts as it sends them: short ways lead where the long ones do."""

from typing import cast

import pytest

from rota.domain.run import DEFAULT_QUEUE, State
from rota.stores import fields
from rota.stores.redis import records, scripts
from storekit.contract import new_run
from storekit.servers import RedisServer
from tests.stores.redis_stages import at, staged


async def test_a_first_claim_reads_the_same_run_by_the_short_way_and_by_the_long_one(
    valkey: RedisServer, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Most claims return runs that have not changed since their put. Their records have the first form."""
    backend = at(valkey.url, namespace)
    async with staged(backend) as stage:
        news = [
            new_run(),
            new_run(key="k", priority=3, expires_after=60.0),
            new_run(args=b'{"name":"%s"}' % (b"x" * 2 * records.APART)),
        ]
        await stage.put(*news)
        claimed = await stage.claim("ada", 10)
        forms = [str(valkey.send("GETRANGE", f"{backend.address.root}r:{run.id}", "1", "1")) for run in claimed.runs]
        assert {form.lower() for form in forms} == {next(iter(fields.FORMS))}
        short = {run.id: run for run in claimed.runs}
        monkeypatch.setattr(records, "_AS_PUT", b"?")  # no record has this form: all are read by the long way
        assert {new.id: await stage.see(new) for new in news} == short
        assert {run.state for run in short.values()} == {State.RUNNING}


async def test_a_run_of_the_default_queue_has_no_byte_of_it_and_no_lane_of_its_own(
    valkey: RedisServer, namespace: str
) -> None:
    """Whoever uses no queues pays nothing: neither the record nor the names of lanes have a place for one."""
    backend = at(valkey.url, namespace)
    root = backend.address.root
    async with staged(backend) as stage:
        await stage.put(plain := new_run())
        heads = {str(name) for name in cast("list[object]", valkey.send("ZRANGE", f"{root}heads", "0", "-1"))}
        size = valkey.send("STRLEN", f"{root}r:{plain.id}")
        await stage.put(queued := new_run(queue="images"))
        more = {str(name) for name in cast("list[object]", valkey.send("ZRANGE", f"{root}heads", "0", "-1"))} - heads
        assert cast("int", valkey.send("STRLEN", f"{root}r:{queued.id}")) > cast("int", size)
        assert ["images" in name for name in more] == [True]
        assert [name for name in heads if DEFAULT_QUEUE in name] == []
        assert DEFAULT_QUEUE not in str(valkey.send("GET", f"{root}r:{plain.id}"))


def test_functions_that_are_seldom_used_are_made_at_their_first_use(valkey: RedisServer) -> None:
    module = "local m, made = {}, 0\n\nfunction m.often() return made end\n"
    seldom = (
        "\n-- seldom\n\nmade = made + 1\nfunction m.rare() return m.rarer() end\nfunction m.rarer() return made end\n"
    )
    text = scripts.asleep("m", module + seldom)
    assert valkey.send("EVAL", text + "return { m.often(), m.rare(), m.rare(), m.often() }", "0") == [0, 1, 1, 1]
    assert scripts.asleep("m", module) == module


def test_every_script_leaves_what_a_plain_run_does_not_need_asleep() -> None:
    for verb in ("put", "claim", "settle"):
        text = scripts.script(verb, modern=True).text
        for module in ("book", "policies", "holds"):
            assert f"setmetatable({module}, {{ __index = function(_, name)" in text
