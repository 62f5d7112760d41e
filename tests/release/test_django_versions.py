"""rota.django with every Django that it supports and every Python of this machine that can run it."""

import re
from pathlib import Path

import pytest

from tools.django_versions import OLDEST, Pair, exit_code, newest, pairs
from tools.pythons import Python, on_this_machine

PYTHONS = [Python(Path(f"python3.{minor}"), (3, minor, 1)) for minor in (11, 12, 13)]


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


@pytest.mark.soak
def test_rota_django_works_with_every_pair_of_this_machine() -> None:
    found = pairs(on_this_machine())
    assert found
    assert [str(pair) for pair in found if exit_code(pair, ["-n", "1", "-p", "no:cacheprovider"])] == []
