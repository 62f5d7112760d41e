"""A submit is sent again while the store is away, but never so late that the store has forgotten its id."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from rota import Activity, InvalidOptions, Reason, Rota, StoreUnavailable
from rota.client.retries import PAUSES, patiently
from rota.store import ID_MEMORY, RETRY_WINDOW
from rota.stores.memory import MemoryBackend
from rota.testing.virtual_loop import VirtualLoop
from storekit.faults import FaultyBackend
from tests.requirement import requirement


async def when_it_gives_up(call: Callable[[], Awaitable[object]], patience: float) -> float:
    loop = asyncio.get_running_loop()
    began = loop.time()
    with pytest.raises(StoreUnavailable):
        await patiently(call, patience)
    return loop.time() - began


@pytest.mark.parametrize("seconds", [0.5, 6.0, 15.0, 10_000.0])
@pytest.mark.parametrize("patience", [1.0, RETRY_WINDOW, ID_MEMORY / 2])
def test_all_tries_end_within_the_window(seconds: float, patience: float) -> None:
    """Each try fails after so many seconds. Virtual time: nobody waits."""
    sent: list[float] = []

    async def away() -> None:
        sent.append(asyncio.get_running_loop().time())
        await asyncio.sleep(seconds)
        raise StoreUnavailable("away")

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        took = runner.run(when_it_gives_up(away, patience))
    assert took == pytest.approx(min(patience, sum(PAUSES) + 4 * seconds))
    assert max(sent) - min(sent) <= patience < ID_MEMORY


@pytest.mark.parametrize("patience", [0, 0.05, 30.5, ID_MEMORY, 3600, -1])
def test_a_patience_that_outlives_the_memory_of_ids_is_refused(patience: float) -> None:
    with pytest.raises(InvalidOptions, match=r"patience=.*would make a second run"):
        Rota("memory://", patience=patience)


@requirement("4.6")
@requirement("4.11")
async def test_a_submit_waits_as_long_as_the_setting_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROTA_PATIENCE", "0.2s")
    app = Rota(FaultyBackend(MemoryBackend()))
    assert app.client().patience == 0.2

    @app.task
    async def quick() -> None: ...

    async with app.client():
        store = await app.client().store()

        async def never(*_: object) -> None:
            await asyncio.Event().wait()

        monkeypatch.setattr(type(store), "put", never, raising=False)
        with pytest.raises(StoreUnavailable, match=r"not answered for 0\.2 s"):
            await quick.submit()


async def test_touches_do_not_wait_for_a_store_that_has_just_not_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    backend = FaultyBackend(MemoryBackend())
    app = Rota(backend)

    @app.task(activity=Activity(after=60))
    async def index() -> None: ...

    assert (await index.touch()).reason is Reason.ACCEPTED
    backend.fail("put", StoreUnavailable("away"), times=2)
    assert (await index.touch()).reason is Reason.UNAVAILABLE
    tried = backend.calls.count("put")
    for _ in range(5):
        assert (await index.touch()).reason is Reason.UNAVAILABLE
    assert backend.calls.count("put") == tried, "none of these asked the store"
    monkeypatch.setattr("rota.client.client.time.monotonic", lambda: 1e9)
    assert (await index.touch()).reason is Reason.UNAVAILABLE, "after a moment, one touch looks whether it is back"
    assert backend.calls.count("put") == tried + 1
    monkeypatch.setattr("rota.client.client.time.monotonic", lambda: 2e9)
    assert [(await index.touch()).reason for _ in range(2)] == [Reason.JOINED] * 2
    await app.stop()
