"""PostgreSQL: one private cluster of any version."""

import ctypes
import fcntl
import os
import shutil
import signal
import subprocess
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar
from urllib.parse import quote

from storekit.servers.binaries import Program
from storekit.servers.places import Address, free_port, private_folder, unprivileged_account
from storekit.servers.process import ServerFailed
from storekit.servers.server import Server

HOST = "127.0.0.1"
ROLE = "rota"


class PostgresServer(Server):
    """A PostgreSQL on a Unix socket, and with `tcp` on a loopback port; the role `rota` owns it, nobody has a password.

    `options` are settings of postgresql.conf. By default nothing is synced to disk: commits survive `kill` but not a
    power failure; for that, use `{"fsync": "on"}`. `template` is a folder that need not exist: the first server makes
    its cluster there, and all servers with the same template copy it, which is faster.
    """

    graceful = signal.SIGINT  # "fast"; SIGTERM would wait until the last client has left
    ending = signal.SIGQUIT  # "immediate": no checkpoint, but no shared memory left behind either
    defaults: ClassVar[Mapping[str, str]] = {
        "fsync": "off",
        "full_page_writes": "off",
        "shared_buffers": "32MB",
        "max_wal_size": "1GB",  # initdb makes it smaller with the small segments, which are there to be copied quickly
        "dynamic_shared_memory_type": "mmap",
        "listen_addresses": "",
        "timezone": "UTC",
    }

    def __init__(
        self,
        programs: Program,
        options: Mapping[str, str] | None = None,
        *,
        tcp: bool = False,
        template: Path | None = None,
    ) -> None:
        super().__init__("postgres", unprivileged_account())
        self.programs = programs
        self.options = {**self.defaults, **({"listen_addresses": HOST} if tcp else {}), **(options or {})}
        self.port = free_port() if tcp else 5432
        self._tcp = tcp
        self._template = template
        self._data = self.folder / "data"

    @property
    def address(self) -> Address:
        return (HOST, self.port) if self._tcp else self.folder / f".s.PGSQL.{self.port}"

    def url_at(self, address: Address, database: str = "postgres") -> str:
        """Return the URL through `address`. It has an `sslmode`, because a client would otherwise ask for TLS first,
        which the fault proxy would take for a request."""
        if isinstance(address, Path):
            port = address.name.rpartition(".")[2]
            return f"postgresql://{ROLE}@/{database}?host={quote(str(address.parent))}&port={port}"
        return f"postgresql://{ROLE}@{address[0]}:{address[1]}/{database}?sslmode=disable"

    def stop_at_once(self) -> None:
        """Do an "immediate" shutdown: connections are cut, and the next start recovers from the log."""
        self._started.thaw()
        self._started.signal(signal.SIGQUIT)
        self._started.wait()

    def close(self) -> None:
        if not self.running:
            # Only a killed server leaves this file, and a System V segment that only its restart would remove.
            for memory in self._lock_file()[6:7]:
                ctypes.CDLL(None).shmctl(int(memory.split()[1]), 0, None)
        super().close()

    def _prepare(self) -> None:
        if self._data.exists():
            return
        if self._template is None:
            make_cluster(self.programs, self._data, self.account)
        else:
            copy_template(self.programs, self._template, self._data, self.account)

    def _command(self) -> list[str]:
        settings = {**self.options, "port": str(self.port), "unix_socket_directories": str(self.folder)}
        flags = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        return [str(self.programs.path / "postgres"), "-D", str(self._data), *flags]

    def _is_ready(self) -> bool:
        lines = self._lock_file()
        return lines[:1] == [str(self.pid)] and lines[7:8] == ["ready"]

    def _lock_file(self) -> list[str]:
        """Return the lines of postmaster.pid: first the pid, seventh the key and id of the shared memory, eighth the
        state."""
        try:
            return [line.strip() for line in (self._data / "postmaster.pid").read_text().split("\n")]
        except OSError:
            return []


def make_cluster(programs: Program, data: Path, account: int | None) -> None:
    """Run initdb without waiting for the disk."""
    flags = ["-U", ROLE, "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync", "--wal-segsize=1"]
    made = subprocess.run(
        [programs.path / "initdb", "-D", data, *flags],
        cwd=data.parent,
        user=account,
        group=account,
        extra_groups=None if account is None else [],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    if made.returncode:
        raise ServerFailed(f"initdb of PostgreSQL {programs.version} failed.\n{made.stdout}{made.stderr}")


def copy_template(programs: Program, template: Path, data: Path, account: int | None) -> None:
    """Copy the cluster at `template`. The first process makes it; a lock lets one process in at a time."""
    with _locked(template):
        if not template.exists():
            # Made elsewhere first: the unprivileged account may not reach the folder of a test run, and a half-made
            # cluster must not be copied.
            workshop = private_folder("initdb", account)
            try:
                make_cluster(programs, workshop / "data", account)
                shutil.move(workshop / "data", template)
            finally:
                shutil.rmtree(workshop, ignore_errors=True)
        shutil.copytree(template, data, symlinks=True)
    if account is not None:
        for place, _, files in os.walk(data):
            for path in (place, *(os.path.join(place, file) for file in files)):
                os.chown(path, account, account)


def remove_template(template: Path) -> None:
    """Remove the template if it exists. The next server makes it again."""
    with _locked(template):
        shutil.rmtree(template, ignore_errors=True)


@contextmanager
def _locked(template: Path) -> Generator[None]:
    with template.with_name(f"{template.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
