"""What a newer version wrote, or something else spoilt, is left alone and holds up nobody."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from rota.domain.lifecycle import Succeeded
from rota.domain.policy import Limit
from rota.domain.run import State
from rota.domain.schedule import Schedule
from rota.store import Declared, RunQuery
from rota.stores.fields import RECORD
from rota.stores.unreadable import gathered
from storekit.contract import Stage, new_run
from storekit.contract.stage import LEASE
from storekit.contract.timetable import Timetable, new_schedule
from storekit.servers import RedisServer
from tests.stores.redis_stages import at, staged

MARKED = """
local key = KEYS[1] .. "r:" .. ARGV[1]
local text = redis.call("GET", key)
local fields = { cmsgpack.unpack_limit(text, text:sub(2, 2) == "a" and 10 or 25, 2) }
fields[9] = ARGV[2] ~= "" and ARGV[2]
redis.call("SET", key, text:sub(1, 2) .. cmsgpack.pack(unpack(fields, 2)))
"""
BLANKS = [field.blank for field in RECORD if field.blank]
NEWER_FORM = f"""
local key = KEYS[1] .. "r:" .. ARGV[1]
local text = redis.call("GET", key)
local fields = {{ cmsgpack.unpack_limit(text, 10, 2) }}
for place, blank in ipairs({{ {", ".join(BLANKS)} }}) do fields[11 + place] = blank end
fields[#fields + 1] = ARGV[2]
redis.call("SET", key, text:sub(1, 1) .. "z" .. cmsgpack.pack(unpack(fields, 2)))
"""
NEWER_SCHEDULE = """
local plan = cmsgpack.unpack(redis.call("HGET", KEYS[1] .. "schedules", ARGV[1]))
plan[2] = plan[2]:gsub(ARGV[2], ARGV[3])
redis.call("HSET", KEYS[1] .. "schedules", ARGV[1], cmsgpack.pack(plan))
"""


class Spoiler:
    """Writes what this version does not."""

    def __init__(self, server: RedisServer, namespace: str) -> None:
        self._server = server
        self.root = f"{{{namespace}}}"

    def send(self, *words: str) -> None:
        self._server.send(*words)

    def newer(self, run: str) -> None:
        """`marked` as a text: the scripts do not mind, the reader does."""
        self._server.send("EVAL", MARKED, "1", self.root, run, "perhaps")

    def as_it_was(self, run: str) -> None:
        self._server.send("EVAL", MARKED, "1", self.root, run, "")

    def newer_form(self, run: str, text: str) -> None:
        """The record of a version that has one more field, which holds this text."""
        self._server.send("EVAL", NEWER_FORM, "1", self.root, run, text)

    def record(self, run: str) -> str:
        return str(self._server.send("GET", f"{self.root}r:{run}"))

    def newer_schedule(self, id: str, old: str, new: str) -> None:
        self._server.send("EVAL", NEWER_SCHEDULE, "1", self.root, id, old, new)


@pytest.fixture
def spoiler(valkey: RedisServer, namespace: str) -> Spoiler:
    return Spoiler(valkey, namespace)


@pytest_asyncio.fixture
async def stage(valkey: RedisServer, namespace: str) -> AsyncIterator[Stage]:
    async with staged(at(valkey.url, namespace)) as stage:
        yield stage


async def test_a_run_of_a_newer_version_goes_back_and_comes_again_after_a_minute(
    stage: Stage, spoiler: Spoiler, caplog: pytest.LogCaptureFixture
) -> None:
    odd, plain = new_run(), new_run()
    await stage.put(odd, plain)
    spoiler.newer(odd.id)
    assert [run.id for run in (await stage.claim(free=2)).runs] == [plain.id]
    assert f"{odd.id} cannot be read by this version" in caplog.text
    depth = (await stage.store.depths()).items[0]
    assert (depth.queued, depth.running) == (1, 1)
    assert [run.id for run in (await stage.claim(again=True, free=2)).runs] == [plain.id]
    stage.wait(59)
    assert (await stage.claim("bob", free=2)).runs == []
    spoiler.as_it_was(odd.id)
    stage.wait(1)
    run = await stage.take("bob")
    assert (run.id, run.fence, run.losses) == (odd.id, 1, 0)
    await stage.end(run, Succeeded())


async def test_a_run_that_went_back_makes_room_for_others_of_its_key(stage: Stage, spoiler: Spoiler) -> None:
    await stage.declare(Limit(per_key=1))
    odd, waiting = new_run(key="k"), new_run(key="k")
    await stage.put(odd, waiting)
    spoiler.newer(odd.id)
    assert (await stage.claim(free=2)).runs == []
    assert (await stage.take()).id == waiting.id


async def test_a_lapsed_run_of_a_newer_version_is_left_to_others(stage: Stage, spoiler: Spoiler) -> None:
    run = await stage.running()
    stage.wait(LEASE + 1)
    spoiler.newer(run.id)
    assert (await stage.claim("bob")).lapsed == []
    spoiler.as_it_was(run.id)
    stage.wait(59)
    assert (await stage.claim("bob")).lapsed == []
    stage.wait(1)
    assert [lapsed.id for lapsed in (await stage.claim("bob")).lapsed] == [run.id]


async def test_runs_of_a_newer_version_are_left_out_of_pages(stage: Stage, spoiler: Spoiler) -> None:
    news = [new_run() for _ in range(7)]
    await stage.put(*news)
    for new in news[1::2]:
        spoiler.newer(new.id)
    plain = [new.id for new in news[::2]]
    page = await stage.store.runs(RunQuery(ids=[new.id for new in news]))
    assert [run.id for run in page.runs] == plain
    found: list[str] = []
    cursor = None
    while True:
        page = await stage.store.runs(RunQuery(limit=2, cursor=cursor))
        found += [run.id for run in page.runs]
        cursor = page.cursor
        if cursor is None:
            break
    assert found == plain[::-1]


async def test_a_record_with_more_fields_is_named_and_goes_back(stage: Stage, spoiler: Spoiler) -> None:
    odd, plain = new_run(), new_run()
    await stage.put(odd, plain)
    spoiler.newer_form(odd.id, "later")
    with gathered() as found:
        assert [run.id for run in (await stage.claim(free=2)).runs] == [plain.id]
        assert [run.id for run in (await stage.store.runs(RunQuery())).runs] == [plain.id]
    assert found == {("run", odd.id): "its record has the form 'z', which a newer version writes"}
    depth = (await stage.store.depths()).items[0]
    assert (depth.queued, depth.running) == (1, 1)


async def test_commands_and_needs_keep_the_fields_of_a_newer_version(stage: Stage, spoiler: Spoiler) -> None:
    odd = new_run()
    await stage.put(odd)
    spoiler.newer_form(odd.id, "later")
    before = spoiler.record(odd.id)
    assert before.endswith("later")
    await stage.put(new_run(needs=(odd.id,)))  # marks `odd` as awaited
    await stage.pause(odd)
    paused = spoiler.record(odd.id)
    assert (paused[:2], paused[-6:]) == ("pz", before[-6:])
    await stage.cancel(odd)
    ended = spoiler.record(odd.id)
    assert (ended[:2], ended[-6:]) == ("cz", before[-6:])


@pytest.mark.parametrize("gated", [False, True])
@pytest.mark.parametrize("words", [("SET", "rubbish"), ("DEL",)], ids=["rubbish", "lost"])
async def test_a_run_that_is_spoilt_or_lost_holds_up_nobody(
    stage: Stage, spoiler: Spoiler, words: tuple[str, ...], gated: bool
) -> None:
    if gated:
        await stage.declare(Limit(total=5, per_key=5))
    spoilt, plain = new_run(key="k"), new_run(key="k")
    await stage.put(spoilt, plain)
    spoiler.send(words[0], f"{spoiler.root}r:{spoilt.id}", *words[1:])
    run = await stage.take()
    assert run.id == plain.id
    assert [run.id for run in (await stage.store.runs(RunQuery())).runs] == [plain.id]
    assert [run.id for run in (await stage.store.runs(RunQuery(state=[State.RUNNING]))).runs] == [plain.id]
    await stage.end(run, Succeeded())
    stage.wait(61)
    assert (await stage.claim()).runs == []


@pytest.mark.parametrize("how", ["newer", "rubbish"])
async def test_a_schedule_that_cannot_be_read_is_left_out_and_set_aside_for_a_minute(
    stage: Stage, spoiler: Spoiler, how: str
) -> None:
    timetable = Timetable(stage)
    for id in ("odd", "plain"):
        await timetable.add(id, overlap="queue")
    if how == "newer":
        spoiler.newer_schedule("odd", "queue", "sometimes")
    else:
        spoiler.send("HSET", f"{spoiler.root}schedules", "odd", "rubbish")
    assert [row.id for row in (await stage.store.rows(Schedule)).items] == ["plain"]
    stage.wait(3600)
    assert await timetable.offered() == ["plain"]
    if how == "rubbish":
        assert await timetable.declare(new_schedule("odd")) == [Declared.ADDED]
        return
    spoiler.newer_schedule("odd", "sometimes", "queue")
    stage.wait(59)
    assert await timetable.offered() == ["plain"]
    stage.wait(1)
    assert await timetable.offered() == ["odd"]
