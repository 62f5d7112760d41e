"""Redis Sentinel: a primary, replicas, and the sentinels that watch them."""

import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from types import TracebackType
from typing import Self

from storekit.servers.binaries import Program
from storekit.servers.places import Address
from storekit.servers.process import PATIENCE, ServerFailed
from storekit.servers.redis import HOST, RedisServer
from storekit.servers.resp import RedisError

SERVICE = "rota"


class SentinelServer(RedisServer):
    """One sentinel. It watches one primary under the name `rota`."""

    def __init__(self, program: Program, primary: int, quorum: int, down_after: float) -> None:
        super().__init__(program, tcp=True)
        self._watch = {
            "monitor": f"{SERVICE} {HOST} {primary} {quorum}",
            "down-after-milliseconds": f"{SERVICE} {round(down_after * 1000)}",
            "failover-timeout": f"{SERVICE} 10000",
            "parallel-syncs": f"{SERVICE} 1",
        }

    def configuration(self) -> list[str]:
        place = [f"{name} {value}" for name, value in self._place().items()]
        return place + [f"sentinel {name} {value}" for name, value in self._watch.items()]

    def primary(self) -> Address:
        """The address of the primary by this sentinel."""
        match self.send("SENTINEL", "GET-MASTER-ADDR-BY-NAME", SERVICE):
            case [str(host), str(port)]:
                return host, int(port)
            case other:
                raise ServerFailed(f"The sentinel knows no primary: {other}")

    def knows(self, replicas: int, sentinels: int) -> bool:
        """Return whether the sentinel sees so many healthy replicas and so many other sentinels."""
        seen = [replica for replica in self._list("REPLICAS") if {"flags", "slave", "master-link-status"} <= {*replica}]
        healthy = [replica for replica in seen if "ok" in replica]
        return len(healthy) >= replicas and len(self._list("SENTINELS")) >= sentinels

    def is_content(self) -> bool:
        """Return whether the sentinel sees no fault in the primary. Before that, clients do not trust its answer."""
        match self.send("SENTINEL", "MASTER", SERVICE):
            case [*words]:
                return words[words.index("flags") + 1] == "master"
            case _:
                return False

    def hurry(self) -> None:
        """Make the sentinel look at the servers twice a second instead of every ten seconds, so that a failover takes
        two seconds.

        It must not be faster, and the ping interval stays: a replica whose last answer is older than five pings is not
        promoted, and while the primary is down replicas are asked only once a second.
        """
        self.send("SENTINEL", "DEBUG", "INFO-PERIOD", "500", "PUBLISH-PERIOD", "100")

    def _command(self) -> list[str]:
        return [*super()._command(), "--sentinel"]

    def _list(self, what: str) -> list[list[str]]:
        answer = self.send("SENTINEL", what, SERVICE)
        assert isinstance(answer, list)
        return [[str(word) for word in entry] for entry in answer if isinstance(entry, list)]


class RedisSentinel:
    """A primary with replicas, watched by sentinels.

    `servers` are the primary and the replicas; their roles change. After `primary.kill()` or `primary.freeze()`,
    `wait_for_failover` returns when the sentinels have promoted a replica; `failover` makes them do it at once.
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
        places = ",".join(f"{HOST}:{sentinel.port}" for sentinel in self.sentinels)
        return f"redis+sentinel://{places}/{SERVICE}/0"

    @property
    def primary(self) -> RedisServer:
        """The server that the sentinels name as the primary."""
        address = self.sentinels[0].primary()
        return next(server for server in self.servers if server.address == address)

    def failover(self) -> RedisServer:
        """Promote a replica although the primary is healthy. Return the new primary when the old one follows it."""
        old = self.primary
        self._until(self._begin_failover, "begin a failover")
        new = self.wait_for_failover(old)
        self._until(old.follows, "make the old primary follow")
        return new

    def wait_for_failover(self, old: RedisServer) -> RedisServer:
        """Return the new primary when every sentinel names it and it accepts writes."""

        def done() -> bool:
            named = {sentinel.primary() for sentinel in self.sentinels}
            if old.address in named or len(named) > 1 or self.primary.info("replication")["role"] != "master":
                return False
            return all(sentinel.is_content() for sentinel in self.sentinels)

        self._until(done, "fail over")
        return self.primary

    def _start(self) -> None:
        primary = self._server({})
        followers = [self._server({"replicaof": f"{HOST} {primary.port}"}) for _ in range(self._replicas)]
        for follower in followers:
            follower.wait_until(follower.follows, "follow")
        quorum = self._sentinels // 2 + 1
        for _ in range(self._sentinels):
            sentinel = SentinelServer(self._program, primary.port, quorum, self._down_after)
            self.sentinels.append(self._running.enter_context(sentinel))
            sentinel.hurry()
        self._until(self._all_know_each_other, "see each other and the replicas")

    def _all_know_each_other(self) -> bool:
        return all(sentinel.knows(self._replicas, self._sentinels - 1) for sentinel in self.sentinels)

    def _server(self, more: Mapping[str, str]) -> RedisServer:
        server = RedisServer(self._program, {**self._options, **more}, tcp=True)
        self.servers.append(self._running.enter_context(server))
        return server

    def _begin_failover(self) -> bool:
        try:
            return self.sentinels[0].send("SENTINEL", "FAILOVER", SERVICE) == "OK"
        except RedisError:  # NOGOODSLAVE until the sentinel has heard from the replica, INPROG during another failover
            return False

    def _until(self, holds: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + PATIENCE
        while not holds():
            if time.monotonic() > deadline:
                raise ServerFailed(f"The sentinels did not {what} in {PATIENCE:g} s.\n{self.sentinels[0].log}")
            time.sleep(0.02)
