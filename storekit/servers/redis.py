"""Redis and Valkey: one server, or a Cluster of one node."""

from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from storekit.servers.binaries import Program
from storekit.servers.places import Address, free_port
from storekit.servers.process import ServerFailed
from storekit.servers.resp import RedisError, Reply, send
from storekit.servers.server import Server

HOST = "127.0.0.1"


class RedisServer(Server):
    """A Redis or Valkey on a Unix socket, or with `tcp` on a loopback port.

    `options` are lines of redis.conf. By default each write is in the append-only file before its reply is sent, but
    not synced to disk: acknowledged writes survive `kill` but not a power failure. For that, use `{"appendfsync":
    "always"}`.
    """

    defaults: ClassVar[Mapping[str, str]] = {
        "appendonly": "yes",
        "appendfsync": "no",
        "auto-aof-rewrite-percentage": "0",
        "save": '""',
        "enable-debug-command": "yes",
        "repl-diskless-sync": "yes",
        "repl-diskless-sync-delay": "0",
    }

    def __init__(self, program: Program, options: Mapping[str, str] | None = None, *, tcp: bool = False) -> None:
        super().__init__("redis")
        self.program = program
        self.options = dict(options or {})
        self._address: Address = (HOST, free_port()) if tcp else self.folder / "redis.sock"

    @property
    def address(self) -> Address:
        return self._address

    @property
    def port(self) -> int:
        """The loopback port of a server with `tcp`."""
        if isinstance(self._address, Path):
            raise ServerFailed(f"{self.name} listens on {self._address} only; start it with tcp=True to have a port.")
        return self._address[1]

    def url_at(self, address: Address, database: int = 0) -> str:
        if isinstance(address, Path):
            return f"unix://{address}?db={database}"
        return f"redis://{address[0]}:{address[1]}/{database}"

    def send(self, *words: str) -> Reply:
        """Send one command and return its reply, without a client library."""
        return send(self.address, *words)

    def info(self, section: str) -> dict[str, str]:
        lines = str(self.send("INFO", section)).splitlines()
        return dict(line.split(":", 1) for line in lines if ":" in line)

    def follows(self) -> bool:
        """Return whether the server is a replica that is connected to its primary. A server that becomes a replica
        disconnects its clients."""
        try:
            return self.info("replication").get("master_link_status") == "up"
        except OSError:
            return False

    def configuration(self) -> list[str]:
        """The lines of the configuration file at the first start. Later the server may rewrite the file."""
        options = {**self._place(), **self.defaults, **self.options}
        if self.program.major < 7:
            options.pop("enable-debug-command")  # 6.2 has no such lock and refuses the line
        return [f"{name} {value}" for name, value in options.items()]

    def _place(self) -> dict[str, str]:
        here = {"dir": f'"{self.folder}"', "bind": HOST, "protected-mode": "yes", "daemonize": "no"}
        if isinstance(self._address, Path):
            return {**here, "port": "0", "unixsocket": f'"{self._address}"', "unixsocketperm": "700"}
        return {**here, "port": str(self._address[1])}

    @property
    def _file(self) -> Path:
        return self.folder / "redis.conf"

    def _prepare(self) -> None:
        if not self._file.exists():
            self._file.write_text("\n".join(self.configuration()) + "\n")

    def _command(self) -> list[str]:
        return [str(self.program.path), str(self._file)]

    def _is_ready(self) -> bool:
        try:
            return self.send("PING") == "PONG"
        except (OSError, RedisError):
            return False


class RedisCluster(RedisServer):
    """A Cluster of one node that holds all slots.

    Its start takes two seconds: a new node keeps its cluster down for so long, and no option changes that.
    """

    def __init__(self, program: Program, options: Mapping[str, str] | None = None) -> None:
        cluster = {
            "cluster-enabled": "yes",
            "cluster-config-file": "nodes.conf",
            "cluster-port": str(free_port()),
            "cluster-announce-ip": HOST,
        }
        super().__init__(program, {**cluster, **(options or {})}, tcp=True)

    def url_at(self, address: Address, database: int = 0) -> str:
        assert not isinstance(address, Path), "a Cluster sends its clients to a host and a port"
        return f"redis+cluster://{address[0]}:{address[1]}"

    def start(self) -> None:
        super().start()
        if "cluster_slots_assigned:16384" not in str(self.send("CLUSTER", "INFO")):
            self.send("CLUSTER", "ADDSLOTSRANGE", "0", "16383")
        self.wait_until(lambda: "cluster_state:ok" in str(self.send("CLUSTER", "INFO")), "serve all slots")
