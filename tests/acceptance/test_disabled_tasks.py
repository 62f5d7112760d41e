"""A disabled task: nothing of it runs, by the word of the code that is asked, until it is enabled again."""

import asyncio
import logging
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from rota import Activity, Every, Refused, Rota
from rota.domain.decision import Reason
from rota.domain.run import State
from rota.domain.schedule import Schedule
from rota.stores.memory import MemoryBackend
from rota.testing import drain, simulate
from rota.testing.simulation import Simulation
from tests.requirement import requirement


def mailer(sent: list[int]) -> Rota:
    """A release of the app: what rota.toml says now is read anew."""
    app = Rota(name="mailer")

    @app.task
    async def mail(n: int) -> None:
        sent.append(n)

    return app


@requirement("0.2")
async def test_0_2_an_operator_disables_a_task_in_rota_toml_and_enables_it_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.chdir(tmp_path)
    sent: list[int] = []
    (tmp_path / "rota.toml").write_text("")
    before = mailer(sent)
    handles = [await before.tasks["mail"].submit(n) for n in (1, 2, 3)]
    await before.client().close()

    (tmp_path / "rota.toml").write_text("[tasks.mail]\nenabled = false\n")
    off = mailer(sent)
    with caplog.at_level(logging.INFO, "rota"):
        await drain(off)
    assert sent == []
    assert "disabled" in caplog.text
    assert "mail" in caplog.text
    with pytest.raises(Refused, match="disabled"):
        await off.tasks["mail"].submit(4)
    told = str(await off.why(handles[0].id))
    assert "mail is disabled in its code or settings: its runs wait" in told
    await off.client().close()

    (tmp_path / "rota.toml").write_text("")
    again = mailer(sent)
    await drain(again)
    assert sorted(sent) == [1, 2, 3]


@requirement("0.7")
async def test_0_7_the_code_of_the_process_that_submits_is_obeyed_before_anything_is_published() -> None:
    app = Rota("memory://")
    ran: list[str] = []

    @app.task(enabled=False, activity=Activity(after=0), aliases=["former"])
    async def off() -> None:
        ran.append("off")

    @app.task
    async def on() -> None:
        ran.append("on")

    refused: list[str | None] = []
    app.on("refused", lambda event: refused.append(event.reason))
    decision = await off.touch()
    assert (bool(decision), decision.reason) == (False, Reason.DISABLED)
    for submit in (off.submit, off.using(delay=5).submit, lambda: app.submit("off"), lambda: app.submit("former")):
        with pytest.raises(Refused, match="disabled"):
            await submit()
    handles = await app.submit_many([on.bind(), off.bind(), on.bind()])
    assert [bool(handle) for handle in handles] == [True, False, True]
    assert handles[1].decision.reason is Reason.DISABLED
    report = await app.plan(
        "p", [1], call=lambda _: off.bind(), at=lambda _: datetime.now(UTC) + timedelta(hours=1), key=str, period="x"
    )
    assert report.refused == {"1": Reason.DISABLED}
    chain = await (on >> off).submit()
    assert [bool(handle) for handle in chain.steps.values()] == [True, False]
    await drain(app)
    assert ran == ["on"] * 3
    assert refused == ["disabled"] * 8
    await app.client().close()


@requirement("0.7")
async def test_0_7_a_retry_of_a_run_is_refused_while_its_task_is_disabled() -> None:
    backend = MemoryBackend()
    before, after = Rota(backend), Rota(backend)

    @before.task(name="mail")
    async def failing() -> None:
        raise ValueError("no")

    @after.task(name="mail", enabled=False)
    async def disabled() -> None: ...

    handle = await failing.submit()
    await drain(before)
    assert (await handle.refresh()).state is State.FAILED
    with pytest.raises(Refused, match="disabled"):
        await after.handle(handle.id).retry()


@requirement("2.9")
def test_2_9_a_disabled_schedule_is_silent_and_its_ticks_are_kept(caplog: pytest.LogCaptureFixture) -> None:
    app = Rota("memory://")

    @app.task(schedule=Every(60), enabled=False)
    async def beat() -> None: ...

    seen: list[Schedule] = []
    told: list[str] = []

    async def look(simulation: Simulation) -> None:
        await asyncio.sleep(330)
        seen.extend((await (await app.client().store()).rows(Schedule)).items)
        told.append(str(await app.why("beat")))

    start = datetime(2026, 11, 15, tzinfo=UTC)
    with caplog.at_level(logging.INFO, "rota"):
        simulation = simulate(app, start, start + timedelta(seconds=600), scenario=look)
    assert simulation.runs == []
    assert [record.message for record in caplog.records if record.levelno >= logging.WARNING] == []
    assert len([record for record in caplog.records if "disabled" in record.message]) == 1, "at the start, once"
    assert [firing.reason for firing in seen[0].recent] == [Reason.DISABLED] * 5
    assert "beat is disabled in its code or settings" in told[0]
