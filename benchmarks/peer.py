"""Peer: what a queue must offer to be measured. Every operation goes through this, whoever is behind it."""

from pathlib import Path
from typing import Protocol

from benchmarks.stamps import Stamps

DATABASE = "queue.db"
STAMPS = "stamps"


class Peer(Protocol):
    async def submit(self, i: int) -> None:
        """Durable when this returns, as are the others."""
        ...

    async def submit_many(self, ids: range) -> None: ...

    async def start(self) -> None:
        """A worker in this process."""
        ...

    async def stop(self) -> None: ...

    def work(self) -> None:
        """A worker process: returns once it is told to terminate."""
        ...


def open_peer(name: str, place: Path) -> Peer:
    """The peer whose files are in `place`."""
    stamps = Stamps(place / STAMPS)
    if name == "huey-sqlite":
        from benchmarks.peer_huey import HueyPeer

        return HueyPeer(place / DATABASE, stamps)
    from benchmarks.peer_rota import RotaPeer

    return RotaPeer("memory://" if name == "rota-memory" else f"sqlite:///{place / DATABASE}", stamps)
