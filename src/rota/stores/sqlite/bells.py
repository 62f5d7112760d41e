"""Doorbells: a commit wakes the processes that it concerns at once, without their looking for it.

Each subscription to hints hangs a bell: a Unix datagram socket in a folder beside the database. Whoever commits rings
the bells of the workers that its commit concerns, and, when runs have changed, the bells of those who wait for runs.
A ring can get lost (the queue of a socket is short, and a process may not reach the folder), so every subscriber also
looks for commits now and then. Where no socket can be made, looking is all there is.
"""

import asyncio
import errno
import os
import secrets
import socket
import stat
import time
from collections.abc import AsyncGenerator, Callable, Collection, Generator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from hashlib import blake2s
from weakref import WeakSet

import msgspec

from rota.store import Hint

LONGEST_RING = 60_000
"""Bytes of one datagram; whoever is told of more runs than fit looks into the store instead."""
LONGEST_ADDRESS = 103
"""Bytes of a socket's path that every system takes (macOS 103, Linux 107)."""
CROWD = 8
"""So many rings at once may mean that more got lost: Linux queues 10 for a socket by default."""
TRIES = 3
"""How often a bell is hung: the folder goes with its last bell, perhaps at the very moment another one comes."""

HANGING = 60.0
"""Seconds after which a bell that is not hung yet, and refuses, is one that a process left behind as it died."""

Heard = Callable[[Hint | None], None]
"""Called with what a ring says; with None if the subscriber has to look for itself."""


class _Ring(msgspec.Struct, array_like=True):
    workers: list[str]
    runs: list[str]
    look: bool = False


class Bells:
    """The bells of one database: those that this process has hung, and those it can ring."""

    def __init__(self, database: str) -> None:
        self.folder = f"{database}-bells"
        self._database = database
        self._own: set[str] = set()
        self._sockets: WeakSet[socket.socket] = WeakSet()
        _all.add(self)

    @asynccontextmanager
    async def hung(self, worker: str | None, heard: Heard) -> AsyncGenerator[bool]:
        """Listen on this loop: to what concerns this worker, or to every change of a run. False: no bell is possible.

        The name of a bell is never used again. So a bell that refuses a ring belongs to nobody any more.
        """
        name = f"{_of(worker)}{secrets.token_hex(8)}"
        bell = self._hang(name)
        if bell is None:
            yield False
            return
        loop = asyncio.get_running_loop()
        self._own.add(name)
        self._sockets.add(bell)
        try:
            loop.add_reader(bell.fileno(), _answer, bell, heard)
            yield True
        finally:
            loop.remove_reader(bell.fileno())
            self._own.discard(name)
            self._take_down(bell, name)

    def ring(self, hint: Hint, concerned: Collection[str]) -> set[str]:
        """Wake these workers, and all who wait for runs if the hint names any. Never blocks, never raises.

        The answer names the workers that have died: see `dead`.
        """
        wanted = tuple({_of(worker) for worker in concerned} | ({_of(None)} if hint.runs else set()))
        names = [name for name in self._names() if name.startswith(wanted)]
        if not names:
            return set()
        ring = _encoded(hint)
        taken = self._try(names, lambda ringer, address: ringer.sendto(ring, address))
        for name, took in taken.items():
            if not took and name.startswith(_of(None)):
                self._unlink(name)
        return _dead(taken, concerned)

    def dead(self, workers: Collection[str]) -> set[str]:
        """Those of these workers that have bells, all of which refuse: their processes have died.

        A worker without a bell is not among them: where it can hang none, it looks for commits instead.
        """
        wanted = tuple({_of(worker) for worker in workers})
        return _dead(self._reachable([name for name in self._names() if name.startswith(wanted)]), workers)

    def clear(self) -> None:
        """Take down the bells of processes that have died; with the last bell, the folder."""
        for name, reachable in self._reachable(self._names()).items():
            if not reachable and not (name.startswith(".") and self._is_new(name)):
                self._unlink(name)
        with suppress(OSError):
            if self._is_ours():
                os.rmdir(self.folder)

    def _names(self) -> list[str]:
        try:
            return os.listdir(self.folder) if self._is_ours() else []
        except OSError:
            return []  # nobody listens

    def _reachable(self, names: list[str]) -> dict[str, bool]:
        return self._try(names, lambda ringer, address: ringer.connect(address))

    def _try(self, names: list[str], act: Callable[[socket.socket, str], object]) -> dict[str, bool]:
        """By name, whether a bell has a process, as far as this one can tell. Those of this process are left alone."""
        found: dict[str, bool] = {}
        if not names:
            return found
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as ringer:
            ringer.setblocking(False)
            for name in names:
                try:
                    if name not in self._own:
                        with self._address(name) as address:
                            act(ringer, address)
                except OSError as error:
                    found[name] = error.errno not in (errno.ECONNREFUSED, errno.ENOENT)
                else:
                    found[name] = True
        return found

    def _is_new(self, name: str) -> bool:
        """A bell may be between bind's two steps. One that is removed there is hung again."""
        try:
            return time.time() - os.lstat(os.path.join(self.folder, name)).st_mtime < HANGING
        except OSError:
            return False

    def _unlink(self, name: str) -> None:
        """Of a bell that refuses. Something that is not a socket refuses as well, and is nobody's bell."""
        path = os.path.join(self.folder, name)
        with suppress(OSError):
            if stat.S_ISSOCK(os.lstat(path).st_mode):
                os.unlink(path)

    def _hang(self, name: str) -> socket.socket | None:
        if os.name == "nt":  # it has no datagrams between processes, and its event loop watches no sockets
            return None
        for _ in range(TRIES):
            try:
                return self._bound(name)
            except FileNotFoundError:
                continue
            except OSError:
                return None
        return None

    def _bound(self, name: str) -> socket.socket:
        """A socket between bind's two steps refuses rings, like one without an owner: it gets its name afterwards."""
        with suppress(FileExistsError):
            os.mkdir(self.folder, 0o700)
        if not self._is_ours():
            raise PermissionError(self.folder)
        bell = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        hidden = os.path.join(self.folder, f".{name}")
        try:
            bell.setblocking(False)
            with self._address(f".{name}") as address:
                bell.bind(address)
            os.chmod(hidden, 0o600)
            os.rename(hidden, os.path.join(self.folder, name))
        except BaseException:
            bell.close()
            with suppress(OSError):
                os.unlink(hidden)
            raise
        return bell

    def _is_ours(self) -> bool:
        """In a folder that all may write to, another user could have made it first, to listen."""
        found = os.lstat(self.folder)
        if not stat.S_ISDIR(found.st_mode):
            return False
        return found.st_uid == os.geteuid() or found.st_uid == os.stat(self._database).st_uid

    def _take_down(self, bell: socket.socket, name: str) -> None:
        bell.close()
        with suppress(OSError):
            os.unlink(os.path.join(self.folder, name))
            os.rmdir(self.folder)  # the last one

    @contextmanager
    def _address(self, name: str) -> Generator[str]:
        """A path that fits into the address of a socket; a long one goes through Linux's folder of open files."""
        path = os.path.join(self.folder, name)
        if len(os.fsencode(path)) <= LONGEST_ADDRESS:
            yield path
            return
        folder = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            yield f"/proc/self/fd/{folder}/{name}"
        finally:
            os.close(folder)

    def forked(self) -> None:
        """In a child: the bells are its parent's. The child rings them like any other, and does not keep them alive."""
        for bell in list(self._sockets):
            bell.close()
        self._own, self._sockets = set(), WeakSet()


_all: WeakSet[Bells] = WeakSet()


def _of(worker: str | None) -> str:
    """How the names of the bells begin that a worker has hung, or (None) that hear of every run."""
    return "any-" if worker is None else f"{blake2s(worker.encode(), digest_size=8).hexdigest()}-"


def _dead(taken: Mapping[str, bool], workers: Collection[str]) -> set[str]:
    """The workers that have bells, none of which was taken by a process."""
    refused = {name.partition("-")[0] for name, took in taken.items() if not took}
    refused -= {name.partition("-")[0] for name, took in taken.items() if took}
    return {worker for worker in workers if _of(worker)[:-1] in refused}


def _encoded(hint: Hint) -> bytes:
    ring = msgspec.json.encode(_Ring(list(hint.workers), list(hint.runs)))
    return ring if len(ring) <= LONGEST_RING else msgspec.json.encode(_Ring([], [], look=True))


def _answer(bell: socket.socket, heard: Heard) -> None:
    """Take what has come. More than a crowd is left for the loop's next round, so that nobody starves."""
    for count in range(1, CROWD + 1):
        try:
            ring = msgspec.json.decode(bell.recv(LONGEST_RING), type=_Ring)
        except OSError:
            return
        except msgspec.DecodeError:
            heard(None)  # of a newer version, perhaps
            continue
        if ring.look or count == CROWD:
            heard(None)
        heard(Hint(workers=frozenset(ring.workers), runs=frozenset(ring.runs)))


def _forked() -> None:
    for bells in list(_all):
        bells.forked()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)
