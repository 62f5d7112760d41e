"""PgBouncer in front of PostgreSQL, in transaction mode."""

import signal
import socket
from collections.abc import Mapping
from pathlib import Path

from storekit.servers.binaries import Program
from storekit.servers.places import Address, unprivileged_account
from storekit.servers.postgres import ROLE, PostgresServer
from storekit.servers.server import Server


class PgBouncer(Server):
    """A pooler on a Unix socket; `options` are lines of its section `[pgbouncer]`.

    Start its PostgreSQL first. It runs as the same account and uses the same folder. It has few server connections, so
    that its clients share them.
    """

    # SIGINT waits for the end of transactions. SIGTERM waits for clients or for nothing, depending on the version.
    graceful = signal.SIGINT

    def __init__(self, program: Program, postgres: PostgresServer, options: Mapping[str, str] | None = None) -> None:
        super().__init__("pgbouncer", unprivileged_account())
        self.program = program
        self.postgres = postgres
        self.options = {"pool_mode": "transaction", "auth_type": "any", "default_pool_size": "4", **(options or {})}

    @property
    def address(self) -> Address:
        return self.folder / ".s.PGSQL.6432"

    def url_at(self, address: Address, database: str = "postgres") -> str:
        return self.postgres.url_at(address, database)

    @property
    def _file(self) -> Path:
        return self.folder / "pgbouncer.ini"

    def _prepare(self) -> None:
        options = {"unix_socket_dir": str(self.folder), "listen_port": "6432", **self.options}
        lines = [f"{name} = {value}" for name, value in options.items()]
        backend = f"* = host={self.postgres.folder} port={self.postgres.port} user={ROLE}"
        self._file.write_text("\n".join(["[databases]", backend, "[pgbouncer]", *lines, ""]))

    def _command(self) -> list[str]:
        return [str(self.program.path), str(self._file)]

    def _is_ready(self) -> bool:
        with socket.socket(socket.AF_UNIX) as probe:
            return probe.connect_ex(str(self.address)) == 0
