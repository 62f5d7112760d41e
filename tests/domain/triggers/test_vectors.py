"""The facts on which cron engines agree (README of the vectors: at least two of them, and a public test suite)."""

import json
from datetime import datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from rota.domain.triggers import Cron

VECTORS = [json.loads(line) for line in (Path(__file__).parent / "cron_vectors.jsonl").read_text("utf-8").splitlines()]
TIMED = [vector for vector in VECTORS if vector["expect"] in ("next", "prev")]
JUDGED = [vector for vector in VECTORS if vector["expect"] in ("valid", "invalid")]


def test_no_vector_is_left_out() -> None:
    assert (len(TIMED), len(JUDGED)) == (255, 239)


@pytest.mark.parametrize("vector", TIMED, ids=lambda vector: vector["id"])
def test_fires_as_the_vector_says(vector: dict[str, Any]) -> None:
    zone = ZoneInfo(vector["tz"] or "UTC")
    cron = Cron(vector["expr"], vector["tz"])
    at = read(vector["start"], zone)
    for text in vector["next"]:
        step = cron.next_after(at) if vector["expect"] == "next" else cron.previous_before(at)
        at = read(text, zone)
        assert step == at


@pytest.mark.parametrize("vector", JUDGED, ids=lambda vector: vector["id"])
def test_accepts_and_refuses_as_the_vector_says(vector: dict[str, Any]) -> None:
    if vector["expect"] == "valid":
        Cron(vector["expr"])
    else:
        with pytest.raises(ValueError, match=r"cron "):
            Cron(vector["expr"])


def read(text: str, zone: ZoneInfo) -> datetime:
    instant = datetime.fromisoformat(text)
    return instant if instant.tzinfo else instant.replace(tzinfo=zone)
