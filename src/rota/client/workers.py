"""Workers: app.workers, what people ask of the workers of all processes."""

from collections.abc import Callable

from rota.client.client import Client
from rota.client.fleet import is_alive
from rota.domain.kinds import is_whole
from rota.errors import InvalidOptions, WorkerNotFound
from rota.store import MOST_SEATS, WorkerSeen

SHOWN = 100
"""Characters of a name that an error shows: the name may come from outside."""


class Workers:
    """Direct one worker, wherever it runs. A worker is named in full, or by the first letters of its name that no other
    worker has. The worker does what it is asked within seconds: the answer to its next claim says so. Each verb returns
    whether it changed anything."""

    def __init__(self, client: Callable[[], Client]) -> None:
        self._client = client

    async def names(self) -> list[str]:
        """Return the names of the workers that are alive, the last seen first."""
        seen = await self._client().rows(WorkerSeen)
        alive = [worker for worker in seen.items if is_alive(worker, seen.now)]
        return [worker.name for worker in sorted(alive, key=lambda worker: -worker.seen_at)]

    async def quiet(self, name: str) -> bool:
        """Let a worker start no more runs until `resume`. It goes on with its runs, and fires schedules."""
        return await self._direct(name, quiet=True)

    async def resume(self, name: str) -> bool:
        """Let a quiet worker start runs again."""
        return await self._direct(name, quiet=False)

    async def stop(self, name: str) -> bool:
        """Stop a worker as a signal does: its handlers have its `grace` to end. A process of `rota worker --processes`
        is not replaced. A stop cannot be taken back."""
        return await self._direct(name, stop=True)

    async def seats(self, name: str, seats: int) -> bool:
        """Let a worker have `seats` runs at once; 0: as many as it was started with. Runs in hand go on."""
        if not is_whole(seats) or not 0 <= seats <= MOST_SEATS:
            raise InvalidOptions(f"seats={seats!r}: a whole number up to {MOST_SEATS:,}, or 0 for the worker's own")
        return await self._direct(name, seats=seats)

    async def _direct(self, name: str, seats: int | None = None, quiet: bool | None = None, stop: bool = False) -> bool:
        return (await self._client().direct([await self.find(name)], seats, quiet, stop)).items[0]

    async def find(self, name: str) -> str:
        """Return the full name of the worker whose name is `name` or begins with `name`."""
        seen = {worker.name: worker for worker in (await self._client().rows(WorkerSeen)).items}
        found = [name] if name in seen else [full for full in seen if name and full.startswith(name)]
        working = [full for full in found if seen[full].tasks]
        if len(working) == 1:
            return working[0]
        shown = name if name.isprintable() and len(name) <= SHOWN else repr(name[:SHOWN])
        if working:
            names = ", ".join(sorted(working)[:5])
            raise WorkerNotFound(f"the names of {len(working)} workers begin with {shown}: {names}")
        if found:
            raise WorkerNotFound(f"worker {found[0]} has stopped")
        raise WorkerNotFound(f"no worker {shown} was seen in the last hour; `rota workers` lists those that were")
