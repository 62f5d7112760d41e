"""Two replicas of `rota serve` and three workers, one of them killed every three seconds: every request makes one run,
every run ends once, and a reader of events knows of each end, or was told to read again."""

import asyncio
import json
import random
import signal
import socket
from collections.abc import Iterator
from contextlib import ExitStack, suppress

import httpx
import pytest

from rota import Rota, Run, State
from tests.faults.test_schedulers import all_runs
from tests.processes import Process

KILL_EVERY = 3.0
PATIENCE = 120.0
TOKEN = {"Authorization": "Bearer rota_for_the_test"}
APP = ("-A", "tests.faults.schedulers:app")
TASKS = [f"nothing{i}" for i in range(4)]


class Crew:
    """Five processes on one store. A replica that was killed comes back on its port."""

    def __init__(self, url: str, opened: ExitStack) -> None:
        self._env = {"ROTA_URL": url, "ROTA_LEASE": "3", "ROTA_TOKEN": TOKEN["Authorization"].split()[1]}
        self._opened = opened
        ports = [free_port() for _ in range(2)]
        self.urls = [f"http://127.0.0.1:{port}" for port in ports]
        self._commands = [
            *(("-m", "rota", *APP, "serve", "--role", "web", "--port", str(port)) for port in ports),
            *[("-m", "rota", *APP, "worker")] * 3,
        ]
        self._processes = [self._start(place) for place in range(5)]
        self.killed = 0

    def _start(self, place: int) -> Process:
        process = self._opened.enter_context(Process(*self._commands[place], env=self._env))
        process.wait_for("serving|rota worker:")
        return process

    def kill(self, place: int) -> None:
        """Kill a process and start another in its place."""
        self._processes[place].signal(signal.SIGKILL)
        self._processes[place].wait()
        self._processes[place] = self._start(place)
        self.killed += 1


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


class Submitter:
    """Send each request until it is answered, and then once more, to the other replica."""

    def __init__(self, urls: list[str], dice: random.Random) -> None:
        self._urls = urls
        self._dice = dice
        self.ids: dict[str, str] = {}
        self.stopping = asyncio.Event()

    async def run(self) -> None:
        async with httpx.AsyncClient(headers=TOKEN, timeout=10) as http:
            while not self.stopping.is_set():
                key, first = f"key-{len(self.ids)}", self._dice.randrange(2)
                ids = [await self._answered(http, key, first), await self._answered(http, key, 1 - first)]
                assert ids[0] == ids[1], f"{key} has made two runs"
                self.ids[key] = ids[0]

    async def _answered(self, http: httpx.AsyncClient, key: str, replica: int) -> str:
        body = {"task": TASKS[hash(key) % len(TASKS)], "args": {}}
        while True:
            with suppress(httpx.TransportError):
                answer = await http.post(
                    f"{self._urls[replica]}/api/v1/runs", json=body, headers={"Idempotency-Key": key}
                )
                if answer.status_code < 500:
                    assert answer.status_code in (200, 201), answer.text
                    return str(answer.json()["run"])
            replica = 1 - replica  # a request whose answer was lost is sent again


class Reader:
    """Follow the events of runs from the last one that was heard, on whichever replica answers. After a `resync`, read
    the runs."""

    def __init__(self, urls: list[str]) -> None:
        self._urls = urls
        self.last: str | None = None
        self.states: dict[str, str] = {}
        self.resyncs = self.streams = 0
        self.begun, self.news = asyncio.Event(), asyncio.Event()

    async def run(self) -> None:
        replica = 0
        async with httpx.AsyncClient(headers=TOKEN, timeout=20) as http:
            while True:
                with suppress(httpx.TransportError):
                    await self._follow(http, self._urls[replica])
                replica = 1 - replica

    async def missing(self, runs: list[Run]) -> list[tuple[str, str | None]]:
        """The runs of whose end no event has told, and the last that it has told; as soon as there are none, or after
        PATIENCE."""
        with suppress(TimeoutError):
            async with asyncio.timeout(PATIENCE):
                while self._untold(runs):
                    self.news.clear()
                    await self.news.wait()
        return self._untold(runs)

    def _untold(self, runs: list[Run]) -> list[tuple[str, str | None]]:
        return [(run.id, self.states.get(run.id)) for run in runs if self.states.get(run.id) != "succeeded"]

    async def _follow(self, http: httpx.AsyncClient, url: str) -> None:
        headers = {} if self.last is None else {"Last-Event-ID": self.last}
        async with http.stream("GET", f"{url}/api/v1/events", params={"topics": "runs"}, headers=headers) as stream:
            if stream.status_code != 200:
                return
            self.streams += 1
            message: dict[str, str] = {}
            async for line in stream.aiter_lines():
                name, colon, text = line.partition(": ")
                if colon:
                    message[name] = text
                elif message:
                    await self._take(http, url, message)
                    message = {}

    async def _take(self, http: httpx.AsyncClient, url: str, message: dict[str, str]) -> None:
        """A message that was cut off before its end is not taken, nor is its id."""
        if message.get("event") == "resync":
            self.resyncs += 1
            await self._read_all(http, url)
        elif message.get("event") == "runs":
            for item in json.loads(message["data"])["items"]:
                self.states[item["id"]] = item["state"]
        self.last = message.get("id", self.last)
        if self.last is not None:
            self.begun.set()
        self.news.set()

    async def _read_all(self, http: httpx.AsyncClient, url: str) -> None:
        cursor: str | None = None
        while True:
            params = {"limit": "500", **({} if cursor is None else {"cursor": cursor})}
            page = (await http.get(f"{url}/api/v1/runs", params=params)).raise_for_status().json()
            self.states |= {run["id"]: run["state"] for run in page["items"]}
            if (cursor := page["next"]) is None:
                return


@pytest.mark.timeout(400)
@pytest.mark.parametrize(
    ("store_url", "seconds"),
    [
        ("sqlite", 10),
        pytest.param("sqlite", 60, marks=pytest.mark.soak),
        pytest.param("valkey-9", 60, marks=pytest.mark.soak),
        pytest.param("postgres-18", 60, marks=pytest.mark.soak),
    ],
    indirect=["store_url"],
)
async def test_requests_that_are_repeated_make_one_run_each_whoever_is_killed(store_url: str, seconds: int) -> None:
    dice = random.Random(seconds)
    with ExitStack() as opened:
        crew = await asyncio.to_thread(Crew, store_url, opened)
        submitter, reader = Submitter(crew.urls, dice), Reader(crew.urls)
        async with asyncio.TaskGroup() as group:  # a reader that dies fails the test at once
            reading = group.create_task(reader.run())
            await reader.begun.wait()  # a first stream is not told of what came before it
            submitting = group.create_task(submitter.run())
            for place in victims(dice, round(seconds / KILL_EVERY)):
                await asyncio.wait((submitting,), timeout=KILL_EVERY)
                await asyncio.to_thread(crew.kill, place)
            submitter.stopping.set()
            await submitting
            runs = await ended_runs(store_url, len(submitter.ids))
            missing = await reader.missing(runs)
            reading.cancel()
    assert not missing, f"events up to {reader.last} did not tell of {len(missing)} ends: {missing[:5]}"
    assert {run.id for run in runs} == set(submitter.ids.values())
    assert len(runs) == len(submitter.ids) > 10, "one run for each key"
    assert {run.state for run in runs} == {State.SUCCEEDED}
    assert all([attempt.outcome for attempt in run.attempts].count("succeeded") == 1 for run in runs)
    assert reader.streams > 1
    print(
        f"{len(runs)} runs, {crew.killed} kills, {sum(run.losses for run in runs)} leases lost, "
        f"{reader.streams} streams, {reader.resyncs} resyncs"
    )


def victims(dice: random.Random, count: int) -> Iterator[int]:
    """A replica and a worker in turn, so that both kinds die in a short test."""
    for at in range(count):
        yield dice.randrange(2) if at % 2 == 0 else dice.randrange(2, 5)


async def ended_runs(url: str, count: int) -> list[Run]:
    """All runs, as soon as none is waiting or running."""
    app = Rota(url)
    async with app.client() as client, asyncio.timeout(PATIENCE):
        while any((await app.depths()).values()):
            await client.news(0.5)
        return await all_runs(await client.store())
