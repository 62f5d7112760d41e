"""The PostgreSQL store keeps the contract, on every version at hand."""

import pytest
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

from rota.store import Backend
from rota.testing.comparison import compare
from rota.testing.contract import StoreContract
from rota.testing.contract.crowding import crowd
from tests.postgres_schemas import Make


class TestPostgres(StoreContract):
    @pytest.fixture
    def backend(self, new_postgres: Make) -> Backend:
        return new_postgres()


def explore(make: Make, examples: int, steps: int = 40) -> None:
    run_state_machine_as_test(
        compare(make),
        settings=settings(max_examples=examples, stateful_step_count=steps),
    )


def test_postgres_agrees_with_the_model(new_postgres: Make) -> None:
    explore(new_postgres, 20)


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_postgres_agrees_with_the_model_for_long(new_postgres: Make) -> None:
    explore(new_postgres, 500, 100)


@pytest.mark.soak
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("seed", range(100, 103))
async def test_postgres_holds_its_limits_for_long(new_postgres: Make, seed: int) -> None:
    await crowd(new_postgres(), 100_000, seed)
