"""`rota schedules backfill`: a run per tick, once."""

import io
from datetime import UTC, datetime, timedelta

import pytest

from rota.cli.render.text import iso
from tests.surfaces.called import Called
from tests.surfaces.timetables import declare, made, on_terminal


def test_a_backfill_makes_a_run_per_tick_once(rota: Called) -> None:
    declare(rota, made("report", "daily 09:00 Europe/Paris"))
    asked = ("schedules", "backfill", "report", "--from", "2026-10-24T09:00", "--to", "2026-10-26T08:59:59")

    made_first = rota.json(*asked)
    again = rota.json(*asked)

    nominals = ["2026-10-24T07:00:00.000000Z", "2026-10-25T08:00:00.000000Z"]  # the clock goes back between the two
    assert [each["nominal"] for each in made_first] == nominals
    assert again == made_first
    assert len(rota.json("runs", "ls")) == 2


def test_a_backfill_to_a_date_includes_that_day_by_the_clock_of_the_schedule(rota: Called) -> None:
    declare(rota, made("report", "daily 23:30 Europe/Paris"))
    rows = rota.json("schedules", "backfill", "report", "--from", "2026-10-24", "--to", "2026-10-25")
    assert [each["nominal"] for each in rows] == ["2026-10-24T21:30:00.000000Z", "2026-10-25T22:30:00.000000Z"]


def test_a_backfill_to_today_takes_the_ticks_so_far(rota: Called) -> None:
    declare(rota, made("often", "cron 0 * * * *"))
    today = datetime.now(UTC).date()
    asked = ("--from", str(today - timedelta(days=1)), "--to", str(today), "--yes")
    nominals = [each["nominal"] for each in rota.json("schedules", "backfill", "often", *asked)]
    assert len(nominals) >= 24
    assert max(nominals) <= iso(datetime.now(UTC).timestamp())


def test_a_backfill_shows_local_times_on_a_terminal(rota: Called, monkeypatch: pytest.MonkeyPatch) -> None:
    declare(rota, made("report", "daily 09:00"))
    on_terminal(monkeypatch)
    said = rota("schedules", "backfill", "report", "--from", "2025-10-24", "--to", "2025-10-24")
    assert "Fri 24 Oct 2025 09:00+00:00" in " ".join(said.split()), said


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_large_backfill_needs_a_yes(rota: Called, monkeypatch: pytest.MonkeyPatch) -> None:
    declare(rota, made("quarterly", "cron */15 * * * *"))
    asked = ("schedules", "backfill", "quarterly", "--from", "2026-11-01T00:00", "--to", "2026-11-01T05:00")

    monkeypatch.setattr("sys.stdin", io.StringIO("y\n"))
    rota(*asked, code=2)
    alone = rota.err
    monkeypatch.setattr("sys.stdin", Terminal("\n"))
    rota(*asked, code=1)
    declined = rota.err
    nothing = rota.json("runs", "ls")
    monkeypatch.setattr("sys.stdin", Terminal("y\n"))
    agreed = rota.json(*asked)

    assert alone == "rota: this makes 21 runs of greet; say so with --yes\n"
    assert declined == "Make 21 runs of greet, one after the other? [y/N] rota: nothing was made\n"
    assert nothing == []
    assert len(agreed) == 21


@pytest.mark.parametrize(
    ("start", "end", "says"),
    [
        ("2026-11-01", "2026-11-01T08:00", "report has no tick from 2026-11-01 to 2026-11-01T08:00"),
        ("2026-11-01", "2099-01-01", "more than 1,000 ticks lie between; backfill a shorter time"),
        ("yesterday", "2026-11-01", "--from yesterday: not an ISO 8601 time"),
    ],
)
def test_a_wrong_backfill_is_one_sentence(rota: Called, start: str, end: str, says: str) -> None:
    declare(rota, made("report", "daily 09:00"))

    rota("schedules", "backfill", "report", "--from", start, "--to", end, "--yes", code=2)

    assert says in rota.err
    assert rota.err.count("\n") == 1


def test_a_tick_that_lies_ahead_is_not_backfilled(rota: Called) -> None:
    declare(rota, made("hourly", "cron 0 * * * *"))
    now = datetime.now(UTC)
    end = (now + timedelta(hours=2)).isoformat()

    rota("schedules", "backfill", "hourly", "--from", now.isoformat(), "--to", end, code=2)

    assert "lies ahead; a backfill makes runs of ticks that have passed" in rota.err
    assert rota.json("runs", "ls") == []
