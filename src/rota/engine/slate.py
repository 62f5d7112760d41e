"""The slate: the leases of a worker in memory that the renewer reads, and the socket that gives it this memory."""

import json
import logging
import mmap
import os
import socket
import struct
import sys
import threading
import time
from contextlib import suppress

from msgspec import Struct

from rota.domain.run import Lease
from rota.domain.tuning import Tuning
from rota.engine.renewer import HEADER, SHORTER, SLOT

log = logging.getLogger("rota")

_BEAT, _RENEWED = struct.Struct("<d?"), struct.Struct("<d")
"""Two parts of the HEADER. Each is written alone: a beat leaves the renewal as it is."""
AGAIN = 0.5
"""Seconds after which a worker that could not call the renewer tries again."""


class RenewerAt(Struct, frozen=True):
    """How to reach the renewer, and what it needs to open the store."""

    address: str
    """The abstract name of the socket on which the renewer listens."""
    url: str
    """The URL of the store, with its secrets."""
    opener: str
    """The function that makes a Backend from the URL, as module:function."""


class Slate:
    """The event loop and the heart of a worker write here without locks: each writes its own bytes, in one step."""

    def __init__(self, seats: int) -> None:
        size = HEADER.size + seats * SLOT.size
        self.file = os.memfd_create("rota-leases", os.MFD_CLOEXEC)
        os.ftruncate(self.file, size)
        self._memory = mmap.mmap(self.file, size)
        self._free = [HEADER.size + seat * SLOT.size for seat in reversed(range(seats))]
        self._places: dict[Lease, int] = {}

    def beat(self, now: float, give_up: bool = False) -> None:
        """The heart beats. `give_up`: the event loop has been silent for too long, so nobody may renew its leases."""
        _BEAT.pack_into(self._memory, 0, now, give_up)

    def renewed(self, began: float) -> None:
        """A renewal of all leases has succeeded. `began` is the time before it read the leases."""
        _RENEWED.pack_into(self._memory, HEADER.size - _RENEWED.size, began)

    def shorten(self, lease: float) -> None:
        """From now on, every renewal is for `lease` seconds."""
        SHORTER.pack_into(self._memory, _BEAT.size + 3, lease)

    def take(self, lease: Lease, till: float) -> None:
        """The worker holds `lease` until `till`. The worker writes this before it calls the handler."""
        text = lease.run.encode()
        if self._free and len(text) <= 230:
            self._places[lease] = self._free.pop()
            self._write(lease, till)

    def extend(self, lease: Lease, till: float) -> None:
        if lease in self._places:
            self._write(lease, till)

    def leave(self, lease: Lease) -> None:
        at = self._places.pop(lease, None)
        if at is not None:
            self._memory[at : at + SLOT.size] = bytes(SLOT.size)
            self._free.append(at)

    def close(self) -> None:
        """Close the shared memory. A call that outlived its worker may still write; nobody reads that."""
        os.close(self.file)

    def _write(self, lease: Lease, till: float) -> None:
        at, text = self._places[lease], lease.run.encode()
        self._memory[at : at + SLOT.size] = SLOT.pack(lease.fence, time.monotonic(), till, len(text), text)


class RenewerConnection:
    """The connection to the renewer: introduces this worker, and does so again when a new renewer is started."""

    def __init__(self, renewer: RenewerAt, slate: Slate, worker: str, tuning: Tuning) -> None:
        self._renewer = renewer
        self._slate = slate
        self._worker = worker
        self._hello = json.dumps([worker, renewer.url, renewer.opener, tuning.lease, tuning.silence, sys.path]).encode()
        self._stopped = threading.Event()
        self._socket: socket.socket | None = None
        self._thread = threading.Thread(target=self._keep, name="rota-renewer", daemon=True)

    def start(self) -> None:
        self._slate.beat(time.monotonic())
        self._thread.start()

    def stop(self) -> None:
        self._stopped.set()
        line = self._socket
        if line is not None:
            with suppress(OSError):  # closed already
                line.shutdown(socket.SHUT_RDWR)
        self._thread.join()

    def _keep(self) -> None:
        """Stay connected. The listening socket outlives a renewer: the next renewer reads the hello when it is up."""
        while not self._stopped.is_set():
            try:
                with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as line:
                    self._socket = line
                    line.connect("\0" + self._renewer.address)
                    self._say_hello(line)
                    if not self._stopped.is_set() and line.recv(1):
                        log.debug("the renewer knows the leases of worker %s", self._worker)
                        line.recv(1)  # the renewer sends nothing more: this returns when it ends
            except OSError as error:
                log.debug("no renewer at %s: %s", self._renewer.address, error)
                self._stopped.wait(AGAIN)

    def _say_hello(self, line: socket.socket) -> None:
        """Send the hello, but only to a process of the same user: the URL may hold a password."""
        _, uid, _ = struct.unpack("3i", line.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
        if uid != os.getuid():
            raise PermissionError(f"{self._renewer.address} belongs to user {uid}")
        socket.send_fds(line, [self._hello], [self._slate.file])
