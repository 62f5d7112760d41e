"""How hypothesis searches: the same examples every time in `make test`, new ones in `make soak`; the bytecode that the
processes of the tests share; and the fixtures that start servers."""

import compileall
import os
import signal
import sys
import time
import zlib
from random import Random

import pytest
from hypothesis import HealthCheck, Phase, settings

import rota
from rota.stores import unreadable

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as in the background of a shell: children would not hear Ctrl-C
    signal.signal(signal.SIGINT, signal.default_int_handler)

os.environ["TZ"] = "UTC"  # people are told local time: whose it is must not depend on the machine
time.tzset()

# Where PYTHONDONTWRITEBYTECODE is set, as in many images, each of the hundreds of processes that tests start would
# compile rota anew, for 0.3 s each. They write none themselves: a test may write a module twice within a second.
sys.dont_write_bytecode = False
os.environ["PYTHONDONTWRITEBYTECODE"] = "1"

pytest_plugins = ["tests.server_fixtures", "tests.postgres_schemas"]

# No profile keeps a database of examples: what an earlier run found would decide what this one tries.
# Each says itself whether it is random: where CI is set, hypothesis begins with a profile that is not.
settings.register_profile(
    "soak",
    database=None,
    deadline=None,
    derandomize=False,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("shrink", parent=settings.get_profile("soak"), derandomize=True)
# Shrinking may take five minutes, and pytest ends a test after two: it is left to the profile "shrink", which finds the
# same example.
settings.register_profile(
    "rota", parent=settings.get_profile("shrink"), phases=[Phase.explicit, Phase.generate, Phase.target]
)
settings.load_profile("rota")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--search-seconds", type=float, default=600.0, help="how long each search of `make soak` goes on")
    parser.addoption("--order", type=int, metavar="SEED", help="run the tests in the random order of this seed")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Shuffle, if asked for. All processes of a run collect the same tests, and shuffle them alike."""
    seed = config.getoption("order")
    if seed is not None:
        Random(seed).shuffle(items)


def pytest_xdist_auto_num_workers() -> int | None:
    """Two processes more than cores: many tests wait, for a lease to lapse or for a process to start."""
    if "PYTEST_XDIST_AUTO_NUM_WORKERS" in os.environ:
        return None
    return 2 + (len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)


def pytest_configure() -> None:
    if "PYTEST_XDIST_WORKER" not in os.environ:
        compileall.compile_dir(rota.__path__[0], quiet=2)


def pytest_report_header(config: pytest.Config) -> str:
    seed = config.getoption("hypothesis_seed")
    if seed is not None:
        return f"searches: seed {seed}; to repeat them: make soak SEED={seed}"
    return (
        'searches: repeatable; to shrink what fails: make test ARGS="--hypothesis-profile shrink --timeout 0 -k NAME"'
    )


@pytest.fixture
def search_seconds(request: pytest.FixtureRequest) -> float:
    """For how long a test that is marked `soak` searches."""
    return float(str(request.config.getoption("search_seconds")))


@pytest.fixture
def search_seed(request: pytest.FixtureRequest) -> int:
    """Where this test's search starts: from its own name, and from the seed of `make soak`."""
    seed = request.config.getoption("hypothesis_seed")
    return zlib.crc32(f"{request.node.name} {seed or 0}".encode())


@pytest.fixture(autouse=True)
def nothing_logged() -> None:
    """A row that cannot be read is logged once per process. Each test starts with no row logged."""
    unreadable.logged.clear()
