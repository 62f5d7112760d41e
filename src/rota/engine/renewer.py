"""The renewer: a process of its own that keeps the leases of workers whose interpreter is held by one call.

Whatever holds the interpreter lock (a regular expression, an extension that never lets go) also stops the thread that
renews leases. This process has another interpreter. It reads which leases a worker holds from memory that both share,
and renews them for a worker that is silent, alive, not stopped, and at work.

It is run as a script, and needs nothing of rota before the first renewal: so it stays small. Its arguments are the file
descriptor of the socket that workers connect to, the pid of the process that started it and that it ends with, the form
of its log lines (text or json), and the least level that it logs.
"""

import mmap
import os
import select
import socket
import struct
import sys
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import threading

    from rota.store import Backend

SLOT = struct.Struct("<qddH230s")
"""A lease in shared memory: fence (0: the slot is free), since when and until when the worker has it by the monotonic
clock, length of the run's id, the id."""
HEADER = struct.Struct("<d?7xd")
"""When the worker's heart last beat, whether the heart has let the leases go, and when the last renewal that succeeded
began. Both times are by the monotonic clock, which all processes of a host share. A heart beats although the store is
away: then nothing is renewed, so a beat says nothing of a lease."""
HELLO = 65_536
LOOKS = 6
"""Looks at a worker per lease."""
SHORT = 15.0
"""Seconds of a lease that leave no time to import rota when it is needed: then it is imported at once."""
SHORTEST = 1.0
"""Seconds that a renewal has at least, however short the lease."""
LEVELS = ("debug", "info", "warning", "error")
LOGS = ["text", "info"]
"""The form of the lines, and the least level that is logged."""
STOPPED = ("T", "t", "Z", "X", "x")


class Client:
    """A worker process, as this one knows it."""

    def __init__(self, line: socket.socket) -> None:
        self.line = line
        self.pid, uid, _ = struct.unpack("3i", line.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
        if uid != os.getuid():
            raise PermissionError(f"pid {self.pid} belongs to user {uid}")
        self.alive = os.pidfd_open(self.pid)
        self.name = self.url = self.opener = ""
        self.lease = self.silence = 0.0
        self.memory: mmap.mmap | None = None
        self.cpu = 0
        self.looked_at = self.renewed_at = 0.0
        self.give_up = self.told = False
        self.renewal: threading.Thread | None = None  # the last one, perhaps still under way

    def hello(self) -> bool:
        """What the worker says once: who it is, where its store is, and its memory. False if it has gone."""
        data, handed, _, _ = socket.recv_fds(self.line, HELLO, 1)
        if not data:
            return False
        import json

        self.name, self.url, self.opener, self.lease, self.silence, path = json.loads(data)
        sys.path[:] = path  # where rota is
        self.memory = mmap.mmap(handed[0], 0, prot=mmap.PROT_READ)
        os.close(handed[0])
        if self.lease < SHORT:
            self.backend()
        self.line.send(b".")
        return True

    def backend(self) -> "Backend":
        """Where the store lives; the first call imports rota."""
        from importlib import import_module

        module, _, function = self.opener.partition(":")
        found: Backend = getattr(import_module(module), function)(self.url)
        return found

    def close(self) -> None:
        self.line.close()
        os.close(self.alive)

    def beat(self) -> tuple[float, bool, float]:
        """When the heart last beat, whether it has let the leases go, and when it last began to renew with success."""
        if self.memory is None:
            return 0.0, False, 0.0
        alive, give_up, renewed = HEADER.unpack_from(self.memory, 0)
        return float(alive), bool(give_up), float(renewed)

    def leases(self) -> list[tuple[str, int, float]]:
        """Run, fence and the end of the lease of each run in hand."""
        if self.memory is None:
            return []
        found: list[tuple[str, int, float]] = []
        renewals = self.beat()[2], self.renewed_at
        for at in range(HEADER.size, len(self.memory) - SLOT.size + 1, SLOT.size):
            fence, since, till, length, text = SLOT.unpack_from(self.memory, at)
            if fence:
                till = max([till, *(renewal + self.lease for renewal in renewals if renewal >= since)])
                # A slot that is being written may be torn: its lease is nobody's, and the next look sees it whole.
                found.append((text[:length].decode(errors="replace"), fence, till))
        return found

    def ended(self) -> bool:
        poll = select.poll()
        poll.register(self.alive, select.POLLIN)
        return bool(poll.poll(0))

    def works(self) -> bool:
        """Neither stopped nor waiting: has it used the processor since the last look?"""
        try:
            with open(f"/proc/{self.pid}/stat") as file:
                fields = file.read().rpartition(")")[2].split()
        except OSError:
            return False
        if self.ended():  # asked after the file was read: the pid may be another process's by now
            return False
        before, self.cpu = self.cpu, int(fields[11]) + int(fields[12])
        return fields[0] not in STOPPED and self.cpu > before

    def wanted(self, now: float) -> dict[str, int]:
        """The leases to renew now, run and fence. A worker that renews in time has none that ends soon. One that could
        not renew for half a lease has, although it is not silent: its interpreter may be held from now on."""
        if now - self.looked_at < 0.9 * self.lease / LOOKS:
            return {}
        self.looked_at = now
        alive, given_up, _ = self.beat()
        silent, works = now - alive, self.works()
        if given_up:  # the heart is there, but the event loop is not: the heart has said so
            return {}
        ending = {run: fence for run, fence, till in self.leases() if till < now + self.lease / 2}
        if silent <= self.lease / 2:
            self.told = self.give_up = False
        elif ending and silent > self.silence:
            self._log_release(silent)
            return {}
        elif ending and works:
            self._tell(silent)
        return ending if works else {}

    def _tell(self, silent: float) -> None:
        if not self.told:
            self.told = True
            say(
                "WARNING",
                f"worker {self.name} (pid {self.pid}) has been silent for {silent:.1f} s, a call holds its "
                f"interpreter: its leases are renewed for up to {self.silence:g} s",
            )

    def _log_release(self, silent: float) -> None:
        if not self.give_up:
            self.give_up = True
            say(
                "ERROR",
                f"worker {self.name} (pid {self.pid}) has been silent for {silent:.0f} s: its leases are let go",
            )


async def renew(client: Client, backend: "Backend", leases: dict[str, int]) -> None:
    """An answer that a lease is lost is none of ours: its run may have ended just now, and its worker asks itself."""
    import asyncio

    from rota.domain.run import Lease

    async with asyncio.timeout(max(SHORTEST, client.lease / LOOKS)), backend.open() as store:
        await store.renew([Lease(run, fence, client.name) for run, fence in leases.items()], client.lease)


def keep(client: Client, leases: dict[str, int], now: float) -> None:
    """One renewal, in a thread of its own."""
    import asyncio

    try:
        asyncio.run(renew(client, client.backend(), leases))
        client.renewed_at = now
    except Exception as error:  # the store is away, or slow: there is another look before the leases lapse
        level = "WARNING" if client.told else "DEBUG"  # a worker that is not silent says it itself
        say(level, f"cannot renew the leases of worker {client.name}: {type(error).__name__}: {error}")


def look(client: Client, now: float) -> None:
    """Renew what one worker needs. A store that does not answer keeps only the renewals of that worker waiting: the
    caller goes on to other workers, and sees when their parent ends."""
    try:
        leases = client.wanted(now)
    except Exception as error:
        say("ERROR", f"cannot read the leases of worker {client.name}: {type(error).__name__}: {error}")
        return
    if leases and (client.renewal is None or not client.renewal.is_alive()):
        import threading

        client.renewal = threading.Thread(target=keep, args=(client, leases, now), daemon=True)
        client.renewal.start()


def say(level: str, words: str) -> None:
    """As the worker beside it logs: lines of text or of JSON. The worker itself cannot, its interpreter is held."""
    form, least = LOGS
    if LEVELS.index(level.lower()) < LEVELS.index(least):
        return
    from datetime import datetime

    clock = datetime.now().astimezone().isoformat(timespec="milliseconds")
    line = f"{clock} {level} rota: {words}"
    if form == "json":
        import json

        line = json.dumps({"ts": clock, "level": level.lower(), "logger": "rota", "message": words})
    sys.stderr.write(line + "\n")
    sys.stderr.flush()


def serve(listener: socket.socket, parent: int) -> None:
    """Until the process that started this one is gone."""
    clients: dict[int, Client] = {}  # by their lines and by their lives
    poll = select.poll()
    for source in (listener.fileno(), parent):
        poll.register(source, select.POLLIN)
    while True:
        soonest = min((client.lease / LOOKS for client in clients.values() if client.lease), default=None)
        for source, _ in poll.poll(None if soonest is None else soonest * 1000):
            if source == parent:
                for gone in set(clients.values()):
                    forget(gone, clients, poll)
                return
            if source == listener.fileno():
                welcome(accept(listener), clients, poll)
            elif source in clients and not heard(clients[source], source):
                forget(clients[source], clients, poll)
        for client in set(clients.values()):
            if client.memory is not None:
                look(client, time.monotonic())


def welcome(client: Client | None, clients: dict[int, Client], poll: select.poll) -> None:
    if client is not None:
        for its in (client.line.fileno(), client.alive):
            clients[its] = client
            poll.register(its, select.POLLIN)


def forget(client: Client, clients: dict[int, Client], poll: select.poll) -> None:
    for its in (client.line.fileno(), client.alive):
        poll.unregister(its)
        del clients[its]
    client.close()


def accept(listener: socket.socket) -> Client | None:
    line, _ = listener.accept()
    try:
        return Client(line)
    except OSError:  # it has gone, or is none of ours
        line.close()
        return None


def heard(client: Client, source: int) -> bool:
    """False once a worker is gone; it says hello, and nothing else."""
    if source == client.alive or client.memory is not None:
        return False
    try:
        return client.hello()
    except (OSError, ValueError):
        return False


def main() -> None:
    import signal

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)  # it ends with the process that started it, after the last lease
    LOGS[:] = sys.argv[3:5]
    parent = os.pidfd_open(int(sys.argv[2]))
    if os.getppid() != int(sys.argv[2]):
        return  # it was gone before
    serve(socket.socket(fileno=int(sys.argv[1])), parent)
    os._exit(0)  # at once: no renewal that is under way is waited for


if __name__ == "__main__":
    main()
