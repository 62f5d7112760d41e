"""A stage for questions of why: an app on a store whose clock a test moves, and workers that are claims."""

from rota import Activity, Breaker, Every, Limit, Rate, Retry, Rota
from rota.app.core import core_of
from rota.domain.lifecycle import Failed, Outcome, Succeeded, settlement_of
from rota.domain.run import Failure
from rota.domain.ticks import due_tick
from rota.store import ClaimRequest, Report, Store
from rota.stores.memory import MemoryBackend
from rota.stores.memory.book import MemoryBook
from rota.stores.memory.store import CAPACITY, MemoryStore
from rota.task import definition_of

START = 1_794_830_400.0
"""2026-11-16 12:00:00 UTC: what time it is in a scene until a test moves its clock."""


class StillBackend(MemoryBackend):
    """A store whose clock moves only with `skew`: a test that says "4 seconds ago" is right on a slow machine too."""

    def __init__(self) -> None:
        super().__init__()
        self._store = MemoryStore(MemoryBook(CAPACITY), lambda: START + self.skew)


class Scene:
    """An app on a store whose clock a test moves; workers are claims."""

    def __init__(self) -> None:
        self.backend = StillBackend()
        self.app = Rota(self.backend, name="scene")
        self._claims = 0

        @self.app.task(schedule=Every(hours=1), limit=Limit(1), key="{page}")
        async def fetch(page: int = 0) -> None: ...

        @self.app.task(activity=Activity(after=60, key="{user}", spacing=600, breaker=Breaker(2)))
        async def summarise(user: str) -> None: ...

        @self.app.task(rate=Rate(1, per=3600))
        async def mail(to: str) -> None: ...

        @self.app.task(rate=Rate(1, per=3600, per_key=True), key="{to}")
        async def ring(to: str) -> None: ...

        @self.app.task(retry=Retry(3, delay=60, jitter=0))
        async def boom(n: int = 0) -> None: ...

        self.fetch, self.summarise, self.mail, self.ring, self.boom = fetch, summarise, mail, ring, boom

    async def store(self) -> Store:
        return await self.app.client().store()

    async def publish(self) -> None:
        await (await self.store()).declare([definition_of(task).spec for task in self.app.tasks.values()])
        await core_of(self.app).declare_schedules()

    async def work(self, free: int = 10, report: Report | None = None) -> list[str]:
        """A worker claims; it ends nothing."""
        self._claims += 1
        claim = await (await self.store()).claim(
            ClaimRequest("ada", self._claims, list(self.app.tasks), free, 30, report)
        )
        return [run.id for run in claim.runs]

    async def end(self, fail: bool = False, outcome: Outcome | None = None) -> None:
        """All that is due runs and ends."""
        self._claims += 1
        store = await self.store()
        runs = (await store.claim(ClaimRequest("ada", self._claims, list(self.app.tasks), 10, 30))).runs
        how = outcome or (Failed(Failure("Boom", "no")) if fail else Succeeded())
        await store.settle([settlement_of(run, how) for run in runs])

    async def fire(self) -> None:
        """Every due schedule makes its tick."""
        self._claims += 1
        store = await self.store()
        claim = await store.claim(ClaimRequest("ada", self._claims, list(self.app.tasks), 0, 30))
        await store.fire([tick for each in claim.schedules if (tick := due_tick(each, claim.now)) is not None])

    async def told(self, subject: str, key: str | None = None) -> str:
        return (await self.app.why(subject, key)).answer
