"""Which functions return their verdict as a dict with a status, by their source."""

import inspect
from collections.abc import Callable
from typing import Any

import pytest

from rota.domain.lint.returns import returns_a_status


def literal() -> dict[str, str]:
    return {"status": "failed"}


async def computed(errors: list[str]) -> dict[str, str]:
    return {"status": "failed" if errors else "success"}


def by_name() -> dict[str, Any]:
    result: dict[str, Any] = {"status": None}
    try:
        result["status"] = "success"
    except OSError as error:
        result["status"] = str(error)
    return result


def built() -> dict[str, Any]:
    result = dict(status="partial", errors=[])  # noqa: C408
    return result  # noqa: RET504


def looked_at(made: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    result = made()
    if result["status"] == "skipped":
        return result
    return {"status": "success"}


def fine() -> dict[str, str]:
    return {"status": "success"}


def kept_to_itself() -> int:
    answer = {"status": "failed"}
    return len(answer)


def of_another() -> int:
    def inner() -> dict[str, str]:
        return {"status": "failed"}

    return len(inner())


def another_word() -> dict[str, str]:
    return {"state": "failed"}


@pytest.mark.parametrize("fn", [literal, computed, by_name, built, looked_at])
def test_a_verdict_is_found(fn: Callable[..., Any]) -> None:
    assert returns_a_status(inspect.getsource(fn))


@pytest.mark.parametrize("fn", [fine, kept_to_itself, of_another, another_word])
def test_what_is_no_verdict_is_left_alone(fn: Callable[..., Any]) -> None:
    assert not returns_a_status(inspect.getsource(fn))


@pytest.mark.parametrize("source", ["", "x = 1", "(lambda: {'status': 'failed'})", ".task(lambda: {"])
def test_what_cannot_be_read_is_no_finding(source: str) -> None:
    assert not returns_a_status(source)
