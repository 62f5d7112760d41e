"""rota.django with every Django that it supports and every Python of this machine that can run it."""

import re
import tomllib
from pathlib import Path

import pytest

from tools.django_versions import OLDEST, Pair, exit_code, newest, pairs
from tools.pythons import Python, claimed, on_this_machine

PYTHONS = [Python(Path(f"python3.{minor}"), (3, minor, 1)) for minor in (11, 12, 13)]
PROJECT = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
MINORS = ("3.11", "3.12", "3.13", "3.14", "3.15")
SUPPORTED = [
    (django, minor)
    for django, oldest in OLDEST.items()
    for minor in MINORS
    if (3, int(minor.removeprefix("3."))) >= oldest
]
"""Every Django with every Python that can run it, whether this machine has it or not."""


def test_a_django_is_tested_with_each_python_that_runs_it() -> None:
    assert [(pair.django, pair.python.minor) for pair in pairs(PYTHONS)] == [
        *(("5.2", minor) for minor in ("3.11", "3.12", "3.13")),
        *((django, minor) for django in ("6.0", "6.1") for minor in ("3.12", "3.13")),
    ]
    best = newest([*PYTHONS, Python(Path("python3.14"), (3, 14, 0), final=False)])
    assert best is not None
    assert (best.django, best.python.minor) == ("6.1", "3.13")
    assert newest(PYTHONS[:1]) is None


@pytest.mark.parametrize("django", OLDEST)
def test_the_pins_of_a_pair_have_its_django_once(django: str) -> None:
    pins = Pair(django, PYTHONS[-1], Path()).pins
    assert re.findall(r"^Django==(\d+\.\d+)", pins, re.M) == [django]
    assert ("django-tasks==" in pins) is (django == "5.2")


def test_each_pair_that_rota_claims_is_a_test_of_its_own() -> None:
    named = claimed(PROJECT["classifiers"])
    assert {minor for django, minor in SUPPORTED if django == "5.2"} >= {*named}
    assert {minor for django, minor in SUPPORTED if django == "6.1"} == {*MINORS} - {"3.11"}


@pytest.mark.soak
@pytest.mark.parametrize(("django", "minor"), SUPPORTED)
def test_rota_django_works_with_every_pair_of_this_machine(django: str, minor: str) -> None:
    found = {(pair.django, pair.python.minor): pair for pair in pairs(on_this_machine())}
    if (django, minor) not in found:
        pytest.skip(f"this machine has no Python {minor}")
    assert exit_code(found[django, minor], ["-n", "1", "-p", "no:cacheprovider"]) == 0
