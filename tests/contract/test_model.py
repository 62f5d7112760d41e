"""Stores against the model: whatever is asked of them in whatever order, they answer alike."""

import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

from rota.store import Backend
from rota.stores.memory import MemoryBackend
from rota.stores.sqlite import SqliteBackend
from rota.testing.comparison import compare
from rota.testing.servers import redis_kinds
from tests.contract.test_redis import a_namespace_of
from tests.server_fixtures import Servers

Make = Callable[[], Backend]


@pytest.fixture
def new_file() -> Iterator[Make]:
    """A backend on a new file each time; gone at the end."""
    folder = Path(tempfile.mkdtemp(prefix="rota-model-"))
    files = iter(range(1_000_000))
    yield lambda: SqliteBackend(folder / f"{next(files)}.db")
    shutil.rmtree(folder)


def explore(make: Make, examples: int, steps: int = 40) -> None:
    run_state_machine_as_test(
        compare(make),
        settings=settings(max_examples=examples, stateful_step_count=steps),
    )


def test_memory_agrees_with_the_model() -> None:
    explore(MemoryBackend, 150)


def test_sqlite_agrees_with_the_model(new_file: Make) -> None:
    explore(new_file, 40)


@pytest.mark.parametrize("kind", redis_kinds())
def test_redis_agrees_with_the_model(kind: str, servers: Servers) -> None:
    url = servers.get(kind).url
    explore(lambda: a_namespace_of(url), 40 if kind == "valkey-9" else 5)


@pytest.mark.soak
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("search", range(4))
def test_memory_agrees_with_the_model_for_long(search: int) -> None:
    """Several searches: what hypothesis remembers of one grows with it, by gigabytes and minutes."""
    explore(MemoryBackend, 500, 100)


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_sqlite_agrees_with_the_model_for_long(new_file: Make) -> None:
    explore(new_file, 500, 100)


@pytest.mark.soak
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("kind", redis_kinds())
def test_redis_agrees_with_the_model_for_long(kind: str, servers: Servers) -> None:
    url = servers.get(kind).url
    explore(lambda: a_namespace_of(url), 500 if kind == "valkey-9" else 100, 100)
