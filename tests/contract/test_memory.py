"""The memory store keeps the contract, within its bounds."""

import pytest

from rota.domain.decision import Decision, Reason
from rota.store import Backend
from rota.stores.memory import MemoryBackend
from storekit.contract import Stage, StoreContract, new_run


class TestMemory(StoreContract):
    @pytest.fixture
    def backend(self) -> Backend:
        return MemoryBackend()


async def test_a_full_memory_refuses_what_is_new_until_a_run_ends() -> None:
    backend = MemoryBackend(capacity=2)
    async with backend.open() as store:
        stage = Stage(backend, store)
        first, second, third = new_run(), new_run(), new_run()
        reply = await store.put([first, second, third, first])
        assert [decision.reason for decision in reply.items] == ["accepted", "accepted", "queue_full", "accepted"]
        assert not await stage.find(third)
        await stage.cancel(first)
        assert (await store.put([third])).items == [Decision(third.id, Reason.ACCEPTED)]
