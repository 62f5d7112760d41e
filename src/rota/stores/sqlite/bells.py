"""Bells: a commit wakes the processes that it concerns at once.

Each subscription to hints has a bell: a Unix datagram socket in a folder beside the database. A process that commits
rings the bells of the workers that the commit concerns and, if runs have changed, the bells of those who wait for runs:
it sends them a datagram, the ring. A ring can get lost (the queue of a socket is short, and a process may not reach the
folder), so every subscriber also checks for commits from time to time. Without sockets these checks are the only way.
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
"""The most bytes of one ring. A ring with more runs only asks the receiver to read the store."""
LONGEST_ADDRESS = 103
"""The most bytes in the path of a socket on every system (macOS 103, Linux 107)."""
CROWD = 8
"""If this many rings wait, more may have got lost: Linux queues 10 datagrams for a socket by default."""
TRIES = 3
"""How often the creation of a bell is tried: the folder is removed with its last bell, perhaps at the same moment."""

HANGING = 60.0
"""Seconds after which an unfinished bell that refuses rings belongs to a process that has died."""

Heard = Callable[[Hint | None], None]
"""Called with the hint of a ring; with None if the subscriber has to read the store."""


class _Ring(msgspec.Struct, array_like=True):
    workers: list[str]
    runs: list[str]
    look: bool = False
    events: bool = False


class Bells:
    """The bells of one database: the bells of this process, and those that it can ring."""

    def __init__(self, database: str) -> None:
        self.folder = f"{database}-bells"
        self._database = database
        self._own: set[str] = set()
        self._sockets: WeakSet[socket.socket] = WeakSet()
        _all.add(self)

    @asynccontextmanager
    async def hung(self, worker: str | None, heard: Heard) -> AsyncGenerator[bool]:
        """Create a bell and call `heard` on this event loop for its rings: those for `worker`, or those for every run
        if `worker` is None. Yield False if no bell can be created.

        The name of a bell is never used again. So a bell that refuses a ring belongs to a process that has died.
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
        """Ring the bells of the workers `concerned` and, if the hint has runs or events, of all who wait for them. This
        never blocks and never raises.

        Return the workers that have died: see `dead`.
        """
        wanted = tuple({_of(worker) for worker in concerned} | ({_of(None)} if hint.runs or hint.events else set()))
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
        """Return those of `workers` that have bells which all refuse rings: their processes have died.

        A worker without a bell may be alive: it checks for commits instead.
        """
        wanted = tuple({_of(worker) for worker in workers})
        return _dead(self._reachable([name for name in self._names() if name.startswith(wanted)]), workers)

    def clear(self) -> None:
        """Remove the bells of processes that have died, and the folder if it is empty."""
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
            return []  # no folder: there are no bells

    def _reachable(self, names: list[str]) -> dict[str, bool]:
        return self._try(names, lambda ringer, address: ringer.connect(address))

    def _try(self, names: list[str], act: Callable[[socket.socket, str], object]) -> dict[str, bool]:
        """Call `act` for each bell. Return by name whether the bell has a living process; true for an unclear error.
        `act` is not called for the bells of this process."""
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
        """Return whether a bell may still be in creation, between `bind` and `rename`."""
        try:
            return time.time() - os.lstat(os.path.join(self.folder, name)).st_mtime < HANGING
        except OSError:
            return False

    def _unlink(self, name: str) -> None:
        """Remove a bell that refuses rings. A file that is no socket refuses too, but is no bell: it stays."""
        path = os.path.join(self.folder, name)
        with suppress(OSError):
            if stat.S_ISSOCK(os.lstat(path).st_mode):
                os.unlink(path)

    def _hang(self, name: str) -> socket.socket | None:
        if os.name == "nt":  # Windows has no Unix datagram sockets, and its default event loop has no add_reader
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
        """Create a socket under a hidden name and rename it. During `bind` a socket exists and refuses rings, like the
        socket of a process that has died."""
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
        """Return whether the folder belongs to this user or to the owner of the database. If everybody may write beside
        the database, another user could have created the folder to read the rings."""
        found = os.lstat(self.folder)
        if not stat.S_ISDIR(found.st_mode):
            return False
        return found.st_uid == os.geteuid() or found.st_uid == os.stat(self._database).st_uid

    def _take_down(self, bell: socket.socket, name: str) -> None:
        bell.close()
        with suppress(OSError):
            os.unlink(os.path.join(self.folder, name))
            os.rmdir(self.folder)  # fails unless this was the last bell

    @contextmanager
    def _address(self, name: str) -> Generator[str]:
        """Yield a path that is short enough for a socket. A long path is replaced by one in /proc/self/fd (Linux)."""
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
        """In a forked child: close the copies of the sockets, which belong to the parent. The child rings them like
        the bells of any other process."""
        for bell in list(self._sockets):
            bell.close()
        self._own, self._sockets = set(), WeakSet()


_all: WeakSet[Bells] = WeakSet()


def _of(worker: str | None) -> str:
    """Return the prefix of the names of the bells of a worker; with None, of the bells for every run."""
    return "any-" if worker is None else f"{blake2s(worker.encode(), digest_size=8).hexdigest()}-"


def _dead(taken: Mapping[str, bool], workers: Collection[str]) -> set[str]:
    """Return the workers that have bells which all refused."""
    refused = {name.partition("-")[0] for name, took in taken.items() if not took}
    refused -= {name.partition("-")[0] for name, took in taken.items() if took}
    return {worker for worker in workers if _of(worker)[:-1] in refused}


def _encoded(hint: Hint) -> bytes:
    ring = msgspec.json.encode(_Ring(list(hint.workers), list(hint.runs), events=hint.events))
    return ring if len(ring) <= LONGEST_RING else msgspec.json.encode(_Ring([], [], look=True))


def _answer(bell: socket.socket, heard: Heard) -> None:
    """Receive the rings that wait, CROWD at most. Others wait for the next turn of the event loop."""
    for count in range(1, CROWD + 1):
        try:
            ring = msgspec.json.decode(bell.recv(LONGEST_RING), type=_Ring)
        except OSError:
            return
        except msgspec.DecodeError:
            heard(None)  # perhaps a newer version sent this ring
            continue
        if ring.look or count == CROWD:
            heard(None)
        heard(Hint(workers=frozenset(ring.workers), runs=frozenset(ring.runs), events=ring.events))


def _forked() -> None:
    for bells in list(_all):
        bells.forked()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)
