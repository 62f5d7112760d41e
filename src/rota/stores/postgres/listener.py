"""The listener receives hints: by NOTIFY on its own connection if that is proven to work, else by polling.

A run that is handed over comes to the connection that listens for its worker: `ear` is the server process of that
connection, and the channel EAR has its number in the name.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
from msgspec import Struct

from rota.domain.backoff import Backoff
from rota.errors import StoreError
from rota.store import Hint
from rota.stores.hub import Hub
from rota.stores.postgres.address import Login
from rota.stores.postgres.driver import Connection, Record, connect, explain
from rota.stores.postgres.rows import read_handed

log = logging.getLogger("rota")

PROOF = 3.0
"""Seconds in which a message to this process itself has to arrive."""
EAR = "rota.ear.{}"
"""The channel of one connection. Its number tells the schema, too: a server process has one database and one schema."""
REGISTERED = 60.0
"""Seconds for which this process is registered in the table `listeners`."""
FIRST_PAUSE, LAST_PAUSE = 0.1, 2.0
"""Seconds between tries to connect again."""
SOON, LATE = 0.5, 2.0
"""Seconds between polls: SOON after a poll that found hints, then longer and longer, up to LATE."""

NOTICED = """
SELECT ARRAY(SELECT name FROM {schema}.workers_seen WHERE idle = 2) AS workers,
       ARRAY(SELECT id FROM {schema}.leases WHERE cancel_requested OR pause_requested) AS runs
"""


class Message(Struct, rename={"sender": "from"}):
    """The payload of a NOTIFY. `tasks`: names of lanes with due runs, for which the sender has chosen no workers."""

    sender: str = ""
    workers: frozenset[str] | None = None
    runs: frozenset[str] | None = None
    tasks: frozenset[str] | None = None
    resync: bool = False
    events: bool = False
    proof: str = ""


_messages = msgspec.json.Decoder(Message)


class Listener:
    """Publishes the hints of other processes in the hub of this process, from the first `changes()` on."""

    def __init__(
        self,
        me: str,
        channel: str,
        schema: str,
        call: Callable[..., Awaitable[list[Record]]],
        hub: Hub,
        idle: Callable[[frozenset[str]], frozenset[str]],
    ) -> None:
        self.proven = False
        self.ear: int | None = None
        """The server process of the connection that listens now."""
        self._me = me
        self._channel = channel
        self._schema = schema
        self._call = call
        self._hub = hub
        self._idle = idle
        self._task: asyncio.Task[None] | None = None
        self._settled = asyncio.Event()
        self._arrived = asyncio.Event()
        self._looks_again = asyncio.Event()

    async def start(self, login: Login | None, shown: str) -> None:
        """Return when NOTIFY is proven to arrive, or when it is clear that it does not. Without `login`, poll."""
        if self._task is None:
            self._task = asyncio.create_task(
                self._listen(login, shown) if login else self._look(), name="rota listener"
            )
        await self._settled.wait()

    def look_again(self) -> None:
        """Another connection was lost: check the connection of the listener now."""
        self._looks_again.set()

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait((self._task,))

    async def _listen(self, login: Login, shown: str) -> None:
        backoff, before = Backoff(FIRST_PAUSE, LAST_PAUSE), False
        while True:
            connection: Connection | None = None
            try:
                connection = await connect(login)
                gone = asyncio.Event()
                connection.add_termination_listener(_setter(gone))
                await connection.add_listener(self._channel, self._heard)
                (row,) = await connection.fetch(f"SELECT {self._schema}.open_ear() AS ear")
                await connection.add_listener(EAR.format(row["ear"]), self._handed)
                if not await self._prove(connection):
                    log.warning("%s: NOTIFY does not arrive (a pooler?), so rota looks every second or so", shown)
                    connection.terminate()
                    await self._look()
                    return
                backoff.reset()
                if before:
                    self._hub.publish(Hint(resync=True))
                before = True
                self.ear = row["ear"]
                await self._stay(connection, gone)
            except StoreError as error:
                log.warning("no hints for now: %s", error)
            except Exception as error:
                log.warning("no hints for now: %s", explain(error, shown))
            finally:
                self.ear = None
                if connection is not None:
                    connection.terminate()
            self._settled.set()
            before = True
            await asyncio.sleep(backoff.pause())

    async def _prove(self, connection: Connection) -> bool:
        """Send a message to this process on another connection, as hints are sent. Does it arrive?"""
        self._arrived.clear()
        await connection.fetch(f"SELECT {self._schema}.listen_for($1, $2)", self._me, REGISTERED)
        proof = msgspec.json.encode({"from": self._me, "proof": self._me}).decode()
        await self._call("SELECT pg_notify($1, $2)", self._channel, proof)
        try:
            async with asyncio.timeout(PROOF):
                await self._arrived.wait()
        except TimeoutError:
            return False
        self.proven = True
        self._settled.set()
        return True

    async def _stay(self, connection: Connection, gone: asyncio.Event) -> None:
        """Renew the registration of this process until the connection is lost."""
        while not gone.is_set():
            waits = [asyncio.create_task(gone.wait()), asyncio.create_task(self._looks_again.wait())]
            try:
                await asyncio.wait(waits, timeout=REGISTERED / 3, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for wait in waits:
                    wait.cancel()
            self._looks_again.clear()
            if not gone.is_set():
                await connection.fetch(f"SELECT {self._schema}.listen_for($1, $2)", self._me, REGISTERED)

    async def _look(self) -> None:
        self._settled.set()
        pause = SOON
        while True:
            await asyncio.sleep(pause)
            pause = min(pause * 1.5, LATE)
            try:
                (row,) = await self._call(NOTICED.replace("{schema}", self._schema))
            except StoreError as error:
                log.warning("cannot look for hints: %s", error)
                continue
            if row["workers"] or row["runs"]:
                pause = SOON
            self._hub.publish(Hint(frozenset(row["workers"]), frozenset(row["runs"]), resync=True))

    def _heard(self, _connection: Any, _pid: int, _channel: str, payload: str) -> None:
        try:
            message = _messages.decode(payload)
        except msgspec.DecodeError:
            return
        if message.proof:
            if message.proof == self._me:
                self._arrived.set()
            return
        if message.sender == self._me:
            return  # `PostgresStore._publish` has published this hint already
        workers = message.workers or frozenset[str]()
        if message.tasks:
            workers |= self._idle(message.tasks)
        runs = message.runs or frozenset[str]()
        self._hub.publish(Hint(workers, runs, message.resync, events=message.events))

    def _handed(self, _connection: Any, _pid: int, _channel: str, payload: str) -> None:
        handed = read_handed(payload)
        if handed is not None:
            self._hub.publish(handed)


def _setter(event: asyncio.Event) -> Callable[[Any], None]:
    return lambda _: event.set()
