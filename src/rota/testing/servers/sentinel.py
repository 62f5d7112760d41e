"""Sentinel: a primary, its replicas, and the sentinels that watch them, all real."""

import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from types import TracebackType
from typing import Self

from rota.testing.servers.binaries import Program
from rota.testing.servers.places import Address
from rota.testing.servers.process import PATIENCE, ServerFailed
from rota.testing.servers.redis import HOST, RedisServer
from rota.testing.servers.resp import RedisError

SERVICE = "rota"


class SentinelServer(RedisServer):
    """One sentinel, which watches one primary under the name `rota`."""

    def __init__(self, program: Program, primary: Address, quorum: int, down_after: float) -> None:
        super().__init__(program, tcp=True)
        assert isinstance(primary, tuple)
        self._watch = {
            "monitor": f"{SERVICE} {primary[0]} {primary[1]} {quorum}",
            "down-after-milliseconds": f"{SERVICE} {round(down_after * 1000)}",
            "failover-timeout": f"{SERVICE} 10000",
            "parallel-syncs": f"{SERVICE} 1",
        }

    def configuration(self) -> list[str]:
        place = [f"{name} {value}" for name, value in self._place().items()]
        return place + [f"sentinel {name} {value}" for name, value in self._watch.items()]

    def primary(self) -> Address:
        """Where it believes the primary to be."""
        match self.ask("SENTINEL", "GET-MASTER-ADDR-BY-NAME", SERVICE):
            case [str(host), str(port)]:
                return host, int(port)
            case other:
                raise ServerFailed(f"The sentinel knows no primary: {other}")

    def knows(self, replicas: int, sentinels: int) -> bool:
        """Whether it sees so many replicas in good health and so many other sentinels."""
        seen = [replica for replica in self._list("REPLICAS") if {"flags", "slave", "master-link-status"} <= {*replica}]
        healthy = [replica for replica in seen if "ok" in replica]
        return len(healthy) >= replicas and len(self._list("SENTINELS")) >= sentinels

    def hurry(self) -> None:
        """Look around ten times a second, not once in ten, so that a failover takes a second, not many."""
        self.ask("SENTINEL", "DEBUG", "INFO-PERIOD", "100", "PING-PERIOD", "100", "PUBLISH-PERIOD", "100")

    def _command(self) -> list[str]:
        return [*super()._command(), "--sentinel"]

    def _list(self, what: str) -> list[list[str]]:
        answer = self.ask("SENTINEL", what, SERVICE)
        assert isinstance(answer, list)
        return [[str(word) for word in entry] for entry in answer if isinstance(entry, list)]


class RedisSentinel:
    """A primary with replicas under the eyes of sentinels.

    `servers` are the primary and the replicas; which is which changes. After `primary.kill()` or `primary.freeze()`,
    `wait_for_failover` returns when the sentinels have promoted another; `failover` makes them do it right away.
    """

    def __init__(
        self,
        program: Program,
        options: Mapping[str, str] | None = None,
        *,
        replicas: int = 1,
        sentinels: int = 1,
        down_after: float = 1.0,
    ) -> None:
        self._program = program
        self._options = dict(options or {})
        self._replicas = replicas
        self._sentinels = sentinels
        self._down_after = down_after
        self._running = ExitStack()
        self.servers: list[RedisServer] = []
        self.sentinels: list[SentinelServer] = []

    def __enter__(self) -> Self:
        try:
            self._start()
        except BaseException:
            self._running.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._running.close()

    @property
    def url(self) -> str:
        places = [sentinel.address for sentinel in self.sentinels]
        return f"redis+sentinel://{','.join(f'{host}:{port}' for host, port in places)}/{SERVICE}/0"  # type: ignore

    @property
    def primary(self) -> RedisServer:
        """The server that the sentinels send clients to."""
        address = self.sentinels[0].primary()
        return next(server for server in self.servers if server.address == address)

    def failover(self) -> RedisServer:
        """Promote a replica though the primary is well; the new primary, once the old one follows it."""
        old = self.primary
        self._until(self._begin_failover, "begin a failover")
        new = self.wait_for_failover(old)
        self._until(lambda: old.info("replication").get("master_link_status") == "up", "make the old primary follow")
        return new

    def wait_for_failover(self, old: RedisServer) -> RedisServer:
        """The new primary, as soon as every sentinel names it and it takes writes."""

        def done() -> bool:
            named = {sentinel.primary() for sentinel in self.sentinels if sentinel.running}
            return old.address not in named and len(named) == 1 and self.primary.info("replication")["role"] == "master"

        self._until(done, "fail over")
        return self.primary

    def _start(self) -> None:
        primary = self._server({})
        followers = [self._server({"replicaof": f"{HOST} {primary.address[1]}"}) for _ in range(self._replicas)]  # type: ignore
        for follower in followers:
            follower.wait_until(
                lambda follower=follower: follower.info("replication")["master_link_status"] == "up", "follow"
            )
        quorum = self._sentinels // 2 + 1
        for _ in range(self._sentinels):
            sentinel = SentinelServer(self._program, primary.address, quorum, self._down_after)
            self.sentinels.append(self._running.enter_context(sentinel))
            sentinel.hurry()
        for sentinel in self.sentinels:
            sentinel.wait_until(lambda s=sentinel: s.knows(self._replicas, self._sentinels - 1), "see the others")

    def _server(self, more: Mapping[str, str]) -> RedisServer:
        server = RedisServer(self._program, {**self._options, **more}, tcp=True)
        self.servers.append(self._running.enter_context(server))
        return server

    def _begin_failover(self) -> bool:
        try:
            return self.sentinels[0].ask("SENTINEL", "FAILOVER", SERVICE) == "OK"
        except RedisError:  # NOGOODSLAVE until it has heard from the replica, INPROG while another one runs
            return False

    def _until(self, holds: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + PATIENCE
        while not holds():
            if time.monotonic() > deadline:
                raise ServerFailed(f"The sentinels did not {what} in {PATIENCE:g} s.\n{self.sentinels[0].log}")
            time.sleep(0.02)
