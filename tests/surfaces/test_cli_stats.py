"""`rota stats`: what ran, in each form."""

import re

import pytest

from tests.requirement import requirement
from tests.surfaces.called import Called
from tests.surfaces.timetables import on_terminal


@requirement("0.16")
def test_what_ran_is_told_by_task_and_origin(rota: Called) -> None:
    rota.work()
    rows = rota.json("stats")
    assert [(row["task"], row["succeeded"], row["failed"]) for row in rows] == [("greet", 1, 0), ("trip", 0, 1)]
    by_origin = rota.json("stats", "--group-by", "origin", "--every", "day", "--since", "300d")
    assert [(row["task"], row["origin"], row["succeeded"]) for row in by_origin] == [(None, "submit", 1)]
    assert rota.json("stats", "--task", "none") == []


def test_a_table_of_stats_fits_a_terminal(rota: Called, monkeypatch: pytest.MonkeyPatch) -> None:
    rota.work()
    on_terminal(monkeypatch, 80)
    lines = rota("stats", "--every", "minute").splitlines()
    assert max(map(len, lines)) <= 80
    assert re.match(r"since +task +succeeded +failed", lines[0].lower())


def test_slots_that_are_gone_are_refused_with_advice(rota: Called) -> None:
    rota.work()
    rota("stats", "--since", "70d", "--every", "hour", code=2)
    assert "kept for 60 days; ask for --every day" in " ".join(rota.err.split())
