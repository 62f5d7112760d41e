"""Streams: the events of the store for many callers at once, from one reader."""

import asyncio
import logging
import math
from collections import Counter, deque
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import suppress

from msgspec import Struct

from rota.app.app import Rota
from rota.client.event_stream import EventStream
from rota.domain.event import GAP
from rota.errors import StoreError
from rota.store import EventQuery, event_number
from rota.views.values import iso
from rota.web.current import Current
from rota.web.problems import Problem
from rota.web.rights import Principal
from rota.web.topics import ALL, CURRENT, ROWS, Gathered, Selection, heartbeat, message, places

log = logging.getLogger("rota.web")

RECONNECT = b"retry: 2000\n\n"
Judge = Callable[[], Awaitable[Principal | None]]
"""Who calls, judged again."""


class Pace(Struct, frozen=True):
    """The numbers of streams."""

    between: float = 0.25
    """Seconds between two messages of a topic."""
    beat: float = 15.0
    """Seconds without a message after which a heartbeat is sent."""
    judge: float = 60.0
    """Seconds after which the rights of a caller are judged again."""
    look: float = 1.0
    """Seconds between two looks at what is sent whole, while something happens; five times that while nothing does."""
    most_waiting: int = 4
    """Messages that wait for a slow reader. Beyond them, it gets a resync instead."""
    most_replayed: int = 5_000
    """Events that a caller gets who comes back. Beyond them, it gets a resync instead."""
    per_caller: int = 16
    in_all: int = 2_000


class Stream:
    """One caller. Its memory is bounded: messages that it does not fetch in time become one resync."""

    def __init__(self, audience: "Audience", principal: Principal, judge: Judge, position: str | None) -> None:
        self.audience = audience
        self.principal = principal
        self.judge = judge
        self.position = position
        """Where the reader was when the stream began: it brings all that comes later."""
        self.waiting: deque[bytes] = deque()
        self.wake = asyncio.Event()
        self.ended: str | None = None

    def push(self, frame: bytes) -> None:
        self.waiting.append(frame)
        self.wake.set()

    def end(self, reason: str) -> None:
        self.ended = reason
        self.wake.set()


class Audience(Gathered):
    """The streams of one selection: what they hear is gathered and encoded once."""

    def __init__(self, selection: Selection) -> None:
        super().__init__(selection)
        self.streams: set[Stream] = set()
        self.current: dict[str, bytes] = {}
        """What was sent last of each topic that is sent whole."""


class Streams:
    """All streams of a service. One reader of the store serves them, while there are any."""

    def __init__(self, app: Rota, pace: Pace | None = None) -> None:
        self.pace = pace or Pace()
        self.resyncs: Counter[str] = Counter()
        """How often callers were told to read again, by reason."""
        self._app = app
        self._audiences: dict[Selection, Audience] = {}
        self._callers: Counter[str] = Counter()
        self._starting = asyncio.Lock()
        self._events: EventStream | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._changed = asyncio.Event()
        self._stopping = False
        self._current = Current(app)

    def __len__(self) -> int:
        return self._callers.total()

    @property
    def cursor(self) -> str | None:
        """Up to where the reader has read; None while nobody listens."""
        return None if self._events is None else self._events.cursor

    async def join(self, selection: Selection, principal: Principal, judge: Judge) -> Stream:
        """Return a stream that hears of all that happens from now on. The caller has to let it `leave`."""
        if self._stopping:
            raise Problem(503, "the service stops", headers={"Retry-After": "2"})
        if self._callers[principal.name] >= self.pace.per_caller or len(self) >= self.pace.in_all:
            raise Problem(429, "there are too many streams of events: close some", headers={"Retry-After": "5"})
        self._callers[principal.name] += 1
        try:
            await self._start()
        except BaseException:
            self._leave(principal)
            raise
        stream = Stream(self._audiences.setdefault(selection, Audience(selection)), principal, judge, self.cursor)
        stream.audience.streams.add(stream)
        return stream

    def leave(self, stream: Stream) -> None:
        if stream not in stream.audience.streams:
            return
        stream.audience.streams.discard(stream)
        if not stream.audience.streams:
            self._audiences.pop(stream.audience.selection, None)
        self._leave(stream.principal)

    def _leave(self, principal: Principal) -> None:
        self._callers[principal.name] -= 1
        self._callers += Counter()  # forgets names without a stream
        if not len(self):
            self._close()

    def stop(self) -> None:
        """End all streams, and let no new ones begin."""
        self._stopping = True
        self._end("stopping")

    def _end(self, reason: str) -> None:
        for audience in self._audiences.values():
            for stream in audience.streams:
                stream.end(reason)

    async def _start(self) -> None:
        async with self._starting:
            if self._events is not None:
                return
            events = self._app.events()
            try:
                async with asyncio.timeout(self._app.backend.poll):
                    await events.start()
            except TimeoutError:
                raise Problem(503, "the store does not answer: try again", headers={"Retry-After": "1"}) from None
            self._events = events
            parts = (self._read(events), self._send(), self._look())
            self._tasks = [asyncio.create_task(part, name="rota streams") for part in parts]

    def _close(self) -> None:
        for task in self._tasks:
            task.cancel()
        self._events, self._tasks = None, []
        for audience in self._audiences.values():
            audience.forget()  # the next reader begins behind these rows: sent later, they would replace newer ones

    async def _read(self, events: EventStream) -> None:
        """Read for all streams. An error that does not pass ends them; their callers come again."""
        flows = self._app.flows
        try:
            async for event in events:
                for audience in self._audiences.values():
                    if event.name == GAP:
                        audience.lose("gap")
                for topic, key, row in places(event, flows):
                    for audience in self._audiences.values():
                        if audience.selection.wants(topic, event):
                            audience.add(topic, key, row)
                self._current.changed = True
                self._changed.set()
        except Exception as error:
            log.warning("streams of events end: %s", error, exc_info=not isinstance(error, StoreError))
            self._end("store")
            self._close()

    async def _send(self) -> None:
        """Send what was gathered: at once after a silence, else `between` seconds after the last time."""
        while True:
            await self._changed.wait()
            self._changed.clear()
            for audience in list(self._audiences.values()):
                if audience:
                    self._count(audience, len(audience.streams))
                    self._spread(audience, audience.messages(self.cursor))
            await asyncio.sleep(self.pace.between)

    def _count(self, gathered: Gathered, streams: int) -> None:
        self.resyncs.update(dict.fromkeys(gathered.lost.values(), streams))

    def _spread(self, audience: Audience, frame: bytes) -> None:
        for stream in audience.streams:
            if len(stream.waiting) >= self.pace.most_waiting:
                stream.waiting.clear()
                self.resyncs["slow"] += 1
                topics = audience.selection.ordered(audience.selection.topics)
                frame_for_slow = message("resync", {"topics": topics, "reason": "slow"}, self._sent(audience))
                stream.push(frame_for_slow)
            else:
                stream.push(frame)

    def _sent(self, audience: Audience) -> str | None:
        """Return up to where the audience has heard of everything; None if some of it waits to be sent."""
        return None if audience else self.cursor

    async def _look(self) -> None:
        """Send what is sent whole, when it has changed."""
        looks = 0
        while True:
            await asyncio.sleep(self.pace.look)
            looks += 1
            wanted = {topic for audience in self._audiences.values() for topic in audience.selection.topics} & {
                *CURRENT
            }
            self._current.known &= wanted
            if not wanted or not (self._current.changed or looks % 5 == 0):
                continue
            with suppress(StoreError):
                await self._current.read(wanted)
                for audience in list(self._audiences.values()):
                    if frame := self._current.news(audience.selection, audience.current):
                        self._spread(audience, frame)

    async def messages(self, stream: Stream, after: str | None, seconds: float | None) -> AsyncGenerator[bytes]:
        """Return what the caller of `stream` gets, from the id `after` on; without it, from now on."""
        selection = stream.audience.selection
        now = await self._app.client().now()
        hello = {"now": iso(now), "resumed": after is not None, "topics": selection.ordered(ALL)}
        yield RECONNECT + message("hello", hello, after or stream.position)
        if after is not None:
            async for frame in self._replay(selection, after, stream.position):
                yield frame
        if current := await self._first(stream.audience):
            yield current
        async for frame in self._live(stream, math.inf if seconds is None else seconds):
            yield frame

    async def _live(self, stream: Stream, seconds: float) -> AsyncGenerator[bytes]:
        """Return what the audience of `stream` brings, and heartbeats, until the stream ends."""
        loop, pace = asyncio.get_running_loop(), self.pace
        judged, ends = loop.time(), loop.time() + seconds
        while True:
            while stream.waiting:
                yield stream.waiting.popleft()
            stream.wake.clear()
            if loop.time() >= judged + pace.judge:
                judged = loop.time()
                try:
                    if await stream.judge() != stream.principal:
                        stream.end("rights")
                except (Problem, StoreError):
                    stream.end("store")  # nobody can say whose session it is; the caller asks again
            if stream.ended is not None:
                yield message("bye", {"reason": stream.ended})
                return
            if loop.time() >= ends:
                return
            try:
                async with asyncio.timeout(min(pace.beat, pace.judge, ends - loop.time())):
                    await stream.wake.wait()
            except TimeoutError:
                if loop.time() < ends:
                    yield heartbeat(None if stream.waiting else self._sent(stream.audience))

    async def _first(self, audience: Audience) -> bytes:
        """Return what is sent whole, as it is now. It is not sent again until it changes."""
        wanted = {*CURRENT} & audience.selection.topics
        if not wanted:
            return b""
        with suppress(StoreError):
            await self._current.read(wanted - self._current.known)
        told: dict[str, bytes] = {}
        frame = self._current.news(audience.selection, told)
        audience.current = told | audience.current  # its other readers have heard what was sent, not what is now
        return frame

    async def _replay(self, selection: Selection, after: str, position: str | None) -> AsyncGenerator[bytes]:
        """Return what was recorded between `after` and `position`; what comes later comes through the audience."""
        gathered, flows = Gathered(selection), self._app.flows
        seen = 0
        while True:
            page = await self._app.client().events(EventQuery(after=after, limit=ROWS))
            for event in page.events:
                if event.name == GAP:
                    gathered.lose("gap")
                for topic, key, row in places(event, flows):
                    if selection.wants(topic, event):
                        gathered.add(topic, key, row)
            seen, after = seen + len(page.events), page.cursor
            ended = not page.events or position is None or event_number(after) >= event_number(position)
            if not ended and seen >= self.pace.most_replayed:
                gathered.lose("many")
                after, ended = position or after, True
            self._count(gathered, 1)
            if gathered:
                yield gathered.messages(after)
            if ended:
                return
