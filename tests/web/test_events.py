"""Streams of events: what a caller hears of, how it goes on, and what many callers cost."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import httpx
import pytest

from rota import Refused, Rota
from rota.errors import StoreUnavailable
from rota.stores.memory import MemoryBackend
from rota.web.problems import Problem
from rota.web.rights import ROLES, Principal
from rota.web.streams import Pace, Stream, Streams
from rota.web.topics import RECORDED, ROWS, Selection
from storekit.faults import FaultyBackend
from tests.web.conftest import Caller
from tests.web.serving import serving

ADA = Principal("ada", ROLES["viewer"])
EVERYTHING = Selection(frozenset(RECORDED))
Message = tuple[str, object, str | None]


async def still_ada() -> Principal:
    return ADA


def parsed(block: str) -> Message | None:
    """Return the name, the data and the id of one message; None for a comment."""
    pairs = [line.partition(": ") for line in block.splitlines() if line and not line.startswith(":")]
    fields = {name: value for name, _, value in pairs}
    return (fields["event"], json.loads(fields["data"]), fields.get("id")) if "data" in fields else None


async def messages(frames: AsyncIterator[bytes]) -> AsyncIterator[Message]:
    async for frame in frames:
        for block in frame.decode().split("\n\n"):
            if (found := parsed(block)) is not None:
                yield found


class Listener:
    """A caller of `streams` inside this process."""

    def __init__(self, streams: Streams, stream: Stream, after: str | None, seconds: float | None = None) -> None:
        self.stream = stream
        self._messages = messages(streams.messages(stream, after, seconds))

    async def next(self) -> Message:
        async with asyncio.timeout(20):
            return await anext(self._messages)

    async def ids_of(self, topic: str, count: int) -> list[str]:
        """Return the ids of the rows of `topic`, when there are `count` of them."""
        found: dict[str, None] = {}
        while len(found) < count:
            name, data, _ = await self.next()
            if name == topic:
                assert isinstance(data, dict)
                found.update(dict.fromkeys(row["id"] for row in data["items"]))
        return list(found)

    async def states(self) -> dict[str, str]:
        """Return the states of the runs in the next message."""
        name, data, _ = await self.next()
        assert name == "runs"
        assert isinstance(data, dict)
        return {row["id"]: row["state"] for row in data["items"]}


async def listen(streams: Streams, selection: Selection = EVERYTHING, after: str | None = None) -> Listener:
    heard = Listener(streams, await streams.join(selection, ADA, still_ada), after)
    assert (await heard.next())[0] == "hello"
    return heard


@pytest.fixture
async def streams(app: Rota) -> AsyncIterator[Streams]:
    async with app.client():
        yield Streams(app, Pace(between=0.001, per_caller=1000))


async def submit(app: Rota, count: int, task: str = "add") -> list[str]:
    chosen = app.tasks[task]
    calls = [chosen.bind(n) if task == "add" else chosen.bind(f"user {n}") for n in range(count)]
    return [(await call.submit()).id for call in calls]


async def test_a_thousand_streams_share_one_reader_and_one_text(app: Rota, streams: Streams) -> None:
    heard = [await listen(streams) for _ in range(1000)]
    (id,) = await submit(app, 1)
    frames = set()
    for listener in heard:
        async with asyncio.timeout(20):
            await listener.stream.wake.wait()
        frames.add(builtin_id(listener.stream.waiting[0]))
    assert len(frames) == 1, "the message was made once"
    assert [await listener.ids_of("runs", 1) for listener in heard[:3]] == [[id]] * 3
    assert len([task for task in asyncio.all_tasks() if task.get_name() == "rota streams"]) == 3
    for listener in heard:
        streams.leave(listener.stream)
    await asyncio.sleep(0)
    assert (len(streams), streams.cursor) == (0, None), "nobody listens: nobody reads"


def builtin_id(frame: bytes) -> int:
    return id(frame)


async def test_whoever_comes_back_misses_nothing(app: Rota, streams: Streams) -> None:
    first = await listen(streams)
    await submit(app, 1)
    name, _, cursor = await first.next()
    assert (name, cursor is not None) == ("runs", True)
    streams.leave(first.stream)
    missed = await submit(app, 2 * ROWS + 7)
    back = await listen(streams, after=cursor)
    later = await submit(app, 1)
    assert await back.ids_of("runs", len(missed) + 1) == missed + later


async def test_what_a_reader_that_failed_has_gathered_is_not_sent_after_newer_rows() -> None:
    backend = FaultyBackend(MemoryBackend())
    app = Rota(backend)
    app.task(name="add")(add)
    async with app.client():
        streams = Streams(app, Pace(between=3600))
        first = await listen(streams)
        await submit(app, 1)
        _, _, cursor = await first.next()
        (id,) = await submit(app, 1)
        while not first.stream.audience:  # it waits to be sent
            await app.client().news(0.05)
        backend.fail("events", StoreUnavailable("nobody may log in", passing=False))
        await app.handle(id).cancel()
        assert (await first.next())[:2] == ("bye", {"reason": "store"})
        back = await listen(streams, after=cursor)  # the first one has not left yet
        assert await back.states() == {id: "cancelled"}
        (later,) = await submit(app, 1)
        assert await back.states() == {later: "queued"}


async def add(a: int) -> int:
    return a


async def test_a_gap_and_too_many_changes_are_a_resync(app: Rota, streams: Streams) -> None:
    forgotten = await listen(streams, after="1")
    assert await forgotten.next() == ("resync", {"topics": list(RECORDED), "reason": "gap"}, streams.cursor)
    await app.submit_many([app.tasks["add"].bind(a=n) for n in range(ROWS + 1)])
    name, data, _ = await forgotten.next()
    assert (name, data) == ("resync", {"topics": ["runs"], "reason": "many"})
    assert streams.resyncs == {"gap": 1, "many": 1}


async def test_a_slow_reader_keeps_few_messages_and_is_told_to_read_again(app: Rota, streams: Streams) -> None:
    slow, quick = await listen(streams), await listen(streams)
    for _ in range(3 * streams.pace.most_waiting):
        await submit(app, 1)
        await quick.ids_of("runs", 1)
        assert len(slow.stream.waiting) <= streams.pace.most_waiting
    names = {(await slow.next())[0]}
    assert names == {"resync"}
    assert streams.resyncs["slow"] >= 1


async def test_a_stream_is_about_what_its_caller_may_see_and_asked_for(app: Rota, streams: Streams) -> None:
    limited = await listen(streams, Selection(frozenset(RECORDED), tasks=("greet",)))
    tasks = await listen(streams, Selection(frozenset({"decisions"})))
    await submit(app, 3)
    ids = await submit(app, 2, "greet")
    assert await limited.ids_of("runs", 2) == ids
    with pytest.raises(Refused):
        await app.tasks["greet"].submit("user 1")
    name, data, _ = await tasks.next()
    assert isinstance(data, dict)
    assert (name, [row["reason"] for row in data["items"]]) == ("decisions", ["already_queued"])


async def test_what_has_no_history_is_sent_whole(app: Rota, streams: Streams) -> None:
    await submit(app, 2)
    heard = await listen(streams, Selection(frozenset({"depths", "workers"})))
    assert await heard.next() == ("depths", {"items": [{"task": "add", "queued": 2, "running": 0, "paused": 0}]}, None)
    assert await heard.next() == ("workers", {"items": []}, None)


async def test_what_is_sent_whole_is_sent_again_only_when_it_has_changed(app: Rota) -> None:
    async with app.client():
        heard = await listen(Streams(app, Pace(look=0.01)), Selection(frozenset({"depths", "workers"})))
        assert [(await heard.next())[0] for _ in range(2)] == ["depths", "workers"]
        for queued in (1, 2):
            await submit(app, 1)
            name, data, _ = await heard.next()
            assert (name, data) == ("depths", {"items": [{"task": "add", "queued": queued, "running": 0, "paused": 0}]})


async def test_streams_per_caller_are_limited(app: Rota) -> None:
    async with app.client():
        streams = Streams(app, Pace(per_caller=2))
        for _ in range(2):
            await streams.join(EVERYTHING, ADA, still_ada)
        with pytest.raises(Problem) as refused:
            await streams.join(EVERYTHING, ADA, still_ada)
        assert refused.value.status == 429
        await streams.join(EVERYTHING, Principal("bob", ROLES["viewer"]), still_ada)


async def test_a_stream_ends_with_the_rights_of_its_caller_and_with_the_service(app: Rota) -> None:
    async def gone() -> None:
        return None

    async with app.client():
        streams = Streams(app, Pace(beat=0.001, judge=0.002))
        ended = Listener(streams, await streams.join(EVERYTHING, ADA, gone), None)
        stays = Listener(streams, await streams.join(EVERYTHING, ADA, still_ada), None)
        assert (await ended.next())[0] == "hello"
        assert await ended.next() == ("bye", {"reason": "rights"}, None)
        assert (await stays.next())[0] == "hello"
        streams.stop()
        assert await stays.next() == ("bye", {"reason": "stopping"}, None)
        with pytest.raises(Problem):
            await streams.join(EVERYTHING, ADA, still_ada)


async def test_a_stream_over_http_says_what_it_is(caller: Caller) -> None:
    answer = await caller("viewer").get("/api/v1/events", params={"wait": 0, "topics": "runs,depths"})
    assert answer.headers["Content-Type"].startswith("text/event-stream")
    assert answer.text.startswith("retry: 2000\n\nid: ")
    for wrong in ({"topics": "nothing"}, {"wait": -1}):
        assert (await caller("viewer").get("/api/v1/events", params=wrong)).status_code == 422
    strange = await caller("viewer").get("/api/v1/events", params={"wait": 0}, headers={"Last-Event-ID": "x\ty"})
    assert strange.status_code == 422
    assert b"rota_event_streams 0.0" in (await caller("viewer").get("/metrics")).content


def test_a_change_of_another_process_arrives_and_every_replica_knows_the_id(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/rota.db"
    (tmp_path / "two").mkdir()
    with (
        serving(tmp_path, url, "--role", "web", token="t" * 40) as one,
        serving(tmp_path / "two", url, "--role", "web", token="t" * 40) as two,
    ):
        headers = {"Authorization": f"Bearer {one.token}"}

        def post(a: int) -> str:
            body = {"task": "add", "args": {"a": a}}
            return str(httpx.post(f"{two.url}/api/v1/runs", json=body, headers=headers).json()["run"])

        with httpx.stream("GET", f"{one.url}/api/v1/events", headers=headers, timeout=30) as stream:
            blocks = blocks_of(stream)
            assert next(blocks)[0] == "hello"
            made = post(1)
            name, data, cursor = next(blocks)
            assert (name, rows(data)) == ("runs", [made])
        assert cursor is not None
        missed = post(2)
        going_on = {**headers, "Last-Event-ID": cursor}
        with httpx.stream("GET", f"{two.url}/api/v1/events", headers=going_on, timeout=30) as stream:
            blocks = blocks_of(stream)
            assert next(blocks)[2] == cursor
            assert rows(next(blocks)[1]) == [missed]
            two.process.terminate()
            assert next(blocks)[:2] == ("bye", {"reason": "stopping"})
            assert list(blocks) == []
        assert two.process.wait(30) == 0


def rows(data: object) -> list[str]:
    assert isinstance(data, dict)
    return [row["id"] for row in data["items"]]


def blocks_of(response: httpx.Response) -> Iterator[Message]:
    lines: list[str] = []
    for line in response.iter_lines():
        if line:
            lines.append(line)
            continue
        if (found := parsed("\n".join(lines))) is not None:
            yield found
        lines = []
