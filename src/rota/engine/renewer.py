"""The renewer: a process that renews the leases of workers while one call holds their interpreter.

A call that holds the interpreter lock (a regular expression, an extension that never releases it) also stops the thread
that renews leases. The renewer is another process with its own interpreter. It reads the leases of a worker from memory
that both share, and renews them for a worker that is silent, alive, not stopped, and at work.

The renewer is run as a script. It imports rota at the first renewal only, so that it stays small. Its arguments:
the file descriptor of the socket that workers connect to, the pid of the process that it ends with,
the form of its log lines (text or json), and the least level that it logs.
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
SHORTER = struct.Struct("<f")
"""The part of the HEADER that a worker writes when it stops."""
HEADER = struct.Struct("<d?3xfd")
"""When the worker's heart last beat, whether the heart has given the leases up, the seconds of a renewal if the worker
stops (SHORTER; 0 while it does not), and when the last successful renewal began. Both times are by the monotonic clock,
which all processes of a host share. A heart also beats while the store does not answer: a beat does not mean that a
lease was renewed."""
HELLO = 65_536
LOOKS = 6
"""How often the renewer looks at a worker during one lease."""
SHORT = 15.0
"""With a lease shorter than this many seconds, rota is imported at once: there is no time when it is needed."""
SHORTEST = 1.0
"""Seconds that a renewal may take at least, however short the lease."""
LEVELS = ("debug", "info", "warning", "error")
LOGS = ["text", "info"]
"""The form of the lines, and the least level that is logged."""
STOPPED = ("T", "t", "Z", "X", "x")


class Client:
    """A worker process, as the renewer knows it."""

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
        self.looked_at = float("-inf")  # the monotonic clock of a machine that has just started is near 0
        self.renewed_at = 0.0
        self.give_up = self.warned = False
        self.renewal: threading.Thread | None = None  # the last renewal, perhaps still under way

    def hello(self) -> bool:
        """Read the only message of the worker: its name, its store, its shared memory. False if the worker is gone."""
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
        """Return the backend of the worker's store; the first call imports rota."""
        from importlib import import_module

        module, _, function = self.opener.partition(":")
        found: Backend = getattr(import_module(module), function)(self.url)
        return found

    def close(self) -> None:
        self.line.close()
        os.close(self.alive)

    def beat(self) -> tuple[float, bool, float]:
        """When the heart last beat, whether it has given the leases up, and when its last successful renewal began."""
        if self.memory is None:
            return 0.0, False, 0.0
        alive, give_up, _, renewed = HEADER.unpack_from(self.memory, 0)
        return float(alive), bool(give_up), float(renewed)

    @property
    def span(self) -> float:
        """Seconds for which the leases are renewed now."""
        shorter = 0.0 if self.memory is None else float(HEADER.unpack_from(self.memory, 0)[2])
        return shorter or self.lease

    def leases(self) -> list[tuple[str, int, float]]:
        """Run, fence and the end of the lease of each run in hand."""
        if self.memory is None:
            return []
        found: list[tuple[str, int, float]] = []
        renewal, span = max(self.beat()[2], self.renewed_at), self.span
        for at in range(HEADER.size, len(self.memory) - SLOT.size + 1, SLOT.size):
            fence, since, till, length, text = SLOT.unpack_from(self.memory, at)
            if fence:
                if renewal >= since:  # a worker that stops makes its leases shorter
                    till = max(till, renewal + span) if span == self.lease else renewal + span
                # A slot that is being written may be torn: the store knows no such lease. The next look sees it whole.
                found.append((text[:length].decode(errors="replace"), fence, till))
        return found

    def ended(self) -> bool:
        poll = select.poll()
        poll.register(self.alive, select.POLLIN)
        return bool(poll.poll(0))

    def works(self) -> bool:
        """Return whether the worker is not stopped and has used the processor since the last look."""
        try:
            with open(f"/proc/{self.pid}/stat") as file:
                fields = file.read().rpartition(")")[2].split()
        except OSError:
            return False
        if self.ended():  # checked after the file was read: the pid may belong to another process by now
            return False
        before, self.cpu = self.cpu, int(fields[11]) + int(fields[12])
        return fields[0] not in STOPPED and self.cpu > before

    def wanted(self, now: float) -> dict[str, int]:
        """Return the leases to renew now: run and fence. A worker that renews in time has no lease that ends soon. A
        worker that could not renew for half a lease has such leases, although it is not silent: a call may hold its
        interpreter from now on."""
        span = self.span
        if now - self.looked_at < 0.9 * span / LOOKS:
            return {}
        self.looked_at = now
        alive, given_up, _ = self.beat()
        silent, works = now - alive, self.works()
        if given_up:  # the heart is alive and has decided not to renew: the event loop does not answer
            return {}
        ending = {run: fence for run, fence, till in self.leases() if till < now + span / 2}
        if silent <= span / 2:
            self.warned = self.give_up = False
        elif ending and silent > self.silence:
            self._log_release(silent)
            return {}
        elif ending and works:
            self._log_silence(silent)
        return ending if works else {}

    def _log_silence(self, silent: float) -> None:
        if not self.warned:
            self.warned = True
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
                f"worker {self.name} (pid {self.pid}) has been silent for {silent:.0f} s: "
                "its leases are no longer renewed",
            )


async def renew(client: Client, backend: "Backend", leases: dict[str, int]) -> None:
    """Renew `leases`. The answers are ignored: a lost run may have just ended, and its worker hears of it by itself."""
    import asyncio

    from rota.domain.run import Lease

    async with asyncio.timeout(max(SHORTEST, client.span / LOOKS)), backend.open() as store:
        await store.renew([Lease(run, fence, client.name) for run, fence in leases.items()], client.span)


def keep(client: Client, leases: dict[str, int], now: float) -> None:
    """Renew once; called in a thread of its own."""
    import asyncio

    try:
        asyncio.run(renew(client, client.backend(), leases))
        client.renewed_at = now
    except Exception as error:  # there is another look before the leases lapse
        level = "WARNING" if client.warned else "DEBUG"  # a worker that is not silent logs this itself
        say(level, f"cannot renew the leases of worker {client.name}: {type(error).__name__}: {error}")


def look(client: Client, now: float) -> None:
    """Renew the leases of one worker that need it, in a thread: a store that does not answer delays neither the other
    workers nor the end of the renewer."""
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
    """Log a line in the form that the worker uses, text or JSON. The worker cannot: a call holds its interpreter."""
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
    """Look after the workers until the process `parent` has ended."""
    clients: dict[int, Client] = {}  # by the descriptors of their sockets and of their processes
    poll = select.poll()
    for source in (listener.fileno(), parent):
        poll.register(source, select.POLLIN)
    while True:
        soonest = min((client.span / LOOKS for client in clients.values() if client.lease), default=None)
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
    except OSError:  # it is gone, or belongs to another user
        line.close()
        return None


def heard(client: Client, source: int) -> bool:
    """Handle what came from `source`. False once the worker is gone; its hello is the only message."""
    if source == client.alive or client.memory is not None:
        return False
    try:
        return client.hello()
    except (OSError, ValueError):
        return False


def main() -> None:
    import signal

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)  # the renewer ends with its parent, after the last lease
    LOGS[:] = sys.argv[3:5]
    try:
        parent = os.pidfd_open(int(sys.argv[2]))
    except ProcessLookupError:
        return  # the parent has ended already
    if os.getppid() != int(sys.argv[2]):
        return  # the same, and another process has its number
    serve(socket.socket(fileno=int(sys.argv[1])), parent)
    os._exit(0)  # do not wait for renewals under way


if __name__ == "__main__":
    main()
