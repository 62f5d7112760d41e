"""`rota runs ls` by schedule and by time, and what workers claim next."""

import asyncio
from pathlib import Path

import pytest

from rota import Every, Rota
from rota.store import ClaimRequest, Store
from tests.requirement import requirement
from tests.surfaces.called import Called, waiting
from tests.surfaces.timetables import beside

WORKERS = "w"


def queue(rota: Called) -> list[str]:
    """Runs of two tasks; the names say in which order they are claimed."""
    app = Rota(rota.url)

    @app.task
    def mail(n: int) -> None: ...

    @app.task
    def ring(n: int) -> None: ...

    async def put() -> list[str]:
        try:
            later = await ring.using(delay=3600).submit(5)
            third = await mail.submit(3)
            fourth = await ring.submit(4)
            first = await ring.using(priority=9).submit(1)
            second = await mail.using(priority=5).submit(2)
            paused = await mail.using(priority=99).submit(6)
            await paused.pause()
            return [run.id for run in (first, second, third, fourth, later)]
        finally:
            await app.stop()

    return asyncio.run(put())


@requirement("4.12")
def test_4_12_the_first_five_in_the_order_of_claims(rota: Called) -> None:
    expected = queue(rota)

    told = [run["id"] for run in rota.json("runs", "ls", "--next", "5")]

    async def claims(store: Store) -> list[str]:
        return [(await store.claim(ClaimRequest(WORKERS, n, ["mail", "ring"], 1, 30))).runs[0].id for n in range(1, 5)]

    assert told == expected
    assert rota.store(claims) == expected[:4], "a worker agrees"
    assert [run["id"] for run in rota.json("runs", "ls", "--next", "5")] == expected[4:]


def test_what_is_claimed_next_can_be_of_one_task_and_leaves_out_paused_ones(rota: Called) -> None:
    first, second, third, fourth, later = queue(rota)
    assert [run["id"] for run in rota.json("runs", "ls", "--next", "2", "--task", "mail")] == [second, third]
    rota("tasks", "pause", "mail")
    assert [run["id"] for run in rota.json("runs", "ls", "--next", "9")] == [first, fourth, later]
    rota("runs", "ls", "--next", "5", "--state", "failed", code=2)
    rota("runs", "ls", "--next", "0", code=2)


def test_runs_of_a_schedule_and_since_an_instant(rota: Called) -> None:
    app = Rota(rota.url)

    @app.task
    def beat(n: int = 0) -> None: ...

    async def put() -> str:
        try:
            await app.schedules.put("hourly", Every(hours=1), beat.bind(1))
            made = await app.schedules.run_now("hourly")
            await beat.submit(2)
            return made.id
        finally:
            await app.stop()

    made = asyncio.run(put())
    assert [run["id"] for run in rota.json("runs", "ls", "--schedule", "hourly")] == [made]
    assert len(rota.json("runs", "ls", "--since", "5m")) == 2
    assert len(rota.json("runs", "ls", "--since", "2026-01-01T00:00")) == 2
    assert rota.json("runs", "ls", "--since", "2999-01-01T00:00Z") == []
    assert rota.json("runs", "ls", "--since", "0s") == []
    assert len(rota.json("runs", "ls", "--since", "5m", "--limit", "1")) == 1
    assert rota.err.startswith("more: --cursor ")
    rota("runs", "ls", "--since", "soon", code=2)
    rota("runs", "ls", "--schedule", "hourli", code=1)
    assert "did you mean hourly?" in rota.err


def test_an_unknown_task_is_refused_with_the_likely_one(rota: Called) -> None:
    rota.put(waiting("abcdef-1"))
    rota("runs", "ls", "--task", "gret", code=2)
    assert "did you mean greet?" in rota.err
    assert rota.json("runs", "ls", "--task", "greet", "--state", "failed") == []


@pytest.mark.parametrize("by", ["project", "app", "option"])
def test_cron_goes_by_the_zone_of_the_app_or_the_project(
    rota: Called, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, by: str, capsys: pytest.CaptureFixture[str]
) -> None:
    if by == "project":
        (tmp_path / "rota.toml").write_text('tz = "Europe/Paris"\n')
    if by == "app":
        beside(monkeypatch, Rota(rota.url, tz="Europe/Paris"))
    option = ("--tz", "Europe/Paris") if by == "option" else ()
    told = rota.json("cron", "0 9 * * 1", "--from", "2026-11-15T00:00", *option)
    assert told["zone"] == "Europe/Paris"
    assert told["fires"][0]["local"] == "2026-11-16T09:00:00+01:00"
    assert [finding["message"] for finding in told["findings"] if "names no time zone" in finding["message"]] == []


def test_a_delay_may_be_a_span(rota: Called) -> None:
    rota("submit", "greet", "--delay", "5m", "--expires", "1h", "--unknown-ok")
    (run,) = rota.json("runs", "ls")
    assert run["due_at"] > run["created_at"]
    rota("submit", "greet", "--delay", "5x", "--unknown-ok", code=2)
    assert "--delay: '5x' is not a duration" in rota.err
