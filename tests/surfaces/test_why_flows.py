"""Why does a step wait? The answer is at the root, however far up, and says what to do."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from rota import Context, Period, Rota
from rota.domain.flow import OnFailure
from rota.domain.run import State
from rota.store import RunQuery
from rota.testing import Simulation, simulate

START = datetime(2026, 11, 15, 3, 0, tzinfo=UTC)
DAY = "2026-11-15"


class Scene:
    """load → left, right → join. Steps fail, or take an hour, when they are told to."""

    def __init__(self, on_failure: OnFailure = "block") -> None:
        self.app = Rota("memory://", tz="UTC")
        self.failing: set[str] = set()
        self.slow: set[str] = set()
        self.day = self.app.flow("day", once=Period.day(), on_failure=on_failure)
        load, left, right, join = (self._task(name) for name in ("load", "left", "right", "join"))
        self.day.step(load, name="first")
        self.day.step(left, after="first")
        self.day.step(right, after="first")
        self.day.step(join, after=[left, right])

    def _task(self, name: str) -> Any:
        @self.app.task(name=name)
        async def work(ctx: Context) -> None:
            await asyncio.sleep(3600 if name in self.slow else 1)
            if name in self.failing:
                raise ValueError(f"no {name} today")

        return work

    def play(self, scenario: Callable[[], Awaitable[object]], hours: float = 2.0) -> None:
        async def played(simulation: Simulation) -> None:
            await scenario()

        simulate(self.app, START, START + timedelta(hours=hours), scenario=played)

    async def run_of(self, task: str) -> str:
        return (await (await self.app.client().store()).runs(RunQuery(task=task, limit=1))).runs[0].id

    async def told(self, subject: str, key: str | None = None) -> str:
        return str(await self.app.why(subject, key))


def test_a_blocked_step_is_followed_to_its_root() -> None:
    scene = Scene()
    scene.failing.add("load")

    async def asks() -> None:
        await scene.day.start()
        await asyncio.sleep(600)
        run = await scene.run_of("join")
        root = (
            "blocked by day/first@2026-11-15 (task load): it failed 10 minutes ago (2026-11-15 03:00:01+00:00): "
            "ValueError: no load today; `rota flows rerun day first --period 2026-11-15`"
        )
        of_run = await scene.app.why(run)
        assert (of_run.held, of_run.answer) == (True, root)
        assert f"run {run} waits for day/left@{DAY} (task left) to succeed, which waits itself" in str(of_run)
        assert "flow: it is step join of day in 2026-11-15" in str(of_run)
        assert root in await scene.told("join")
        assert root in await scene.told("join", f"day/join@{DAY}")

    scene.play(asks)


def test_what_runs_or_is_due_is_no_root() -> None:
    scene = Scene()
    scene.slow.add("left")

    async def asks() -> None:
        await scene.day.start()
        await asyncio.sleep(600)
        answer = await scene.app.why(await scene.run_of("join"))
        assert f"waits for day/left@{DAY} (task left) to succeed, which runs on " in answer.answer
        assert ", begun 10 minutes ago" in answer.answer
        assert "right" not in str(answer), "that is done"
        assert "blocked" not in str(answer)

    scene.play(asks)


def test_a_step_that_nobody_started_and_one_that_is_paused_or_cancelled_are_roots() -> None:
    scene = Scene()
    scene.slow.add("load")

    async def asks() -> None:
        await scene.day.start()
        await asyncio.sleep(60)
        await scene.app.handle(await scene.run_of("left")).pause("later")
        await scene.app.handle(await scene.run_of("right")).cancel("not today")
        told = await scene.told(await scene.run_of("join"))
        assert f"blocked by day/left@{DAY} (task left): it is paused (later); `rota runs resume " in told
        assert f"blocked by day/right@{DAY} (task right): it was cancelled" in told
        assert "(not today); `rota flows rerun day right --period 2026-11-15`" in told
        other = await scene.day.rerun("join", "2026-11-14", downstream=False)
        assert (
            "blocked by day/left@2026-11-14 (task left): no run of it is known, so it was never started or is "
            "forgotten; `rota flows start day --period 2026-11-14`"
        ) in await scene.told(other["join"].run)

    scene.play(asks)


def test_a_paused_task_is_a_root() -> None:
    scene = Scene()

    async def asks() -> None:
        await scene.app.pause("load")
        await scene.day.start()
        told = await scene.told(await scene.run_of("join"))
        assert "blocked by day/first@2026-11-15 (task load): its task load is paused; `rota tasks resume load`" in told
        await scene.app.resume("load")
        assert "blocked" not in await scene.told(await scene.run_of("join"))

    scene.play(asks)


def test_a_step_behind_one_that_may_fail_waits_for_its_end() -> None:
    scene = Scene("continue")
    scene.slow.add("load")

    async def asks() -> None:
        await scene.day.start()
        await asyncio.sleep(60)
        assert f"waits for day/first@{DAY} (task load) to end, which runs" in await scene.told(
            await scene.run_of("left")
        )

    scene.play(asks)


def test_a_step_that_was_cancelled_because_its_flow_stopped_names_the_culprit() -> None:
    scene = Scene("stop")
    scene.failing.add("load")

    async def asks() -> None:
        await scene.day.start()
        await asyncio.sleep(600)
        told = await scene.told(await scene.run_of("join"))
        assert "it was cancelled 10 minutes ago" in told
        assert (
            "stopped: step first failed 10 minutes ago (2026-11-15 03:00:01+00:00): ValueError: no load today; " in told
        )
        assert "`rota flows rerun day first --period 2026-11-15`" in told

    scene.play(asks)


def test_a_step_of_a_chain_is_followed_too() -> None:
    scene = Scene()
    scene.failing.add("load")

    async def asks() -> None:
        tasks = scene.app.tasks
        await (tasks["load"].bind() >> tasks["left"]).submit()
        await asyncio.sleep(60)
        told = await scene.told(await scene.run_of("left"))
        assert f"`rota runs retry {await scene.run_of('load')}`" in told

    scene.play(asks)


def test_what_is_done_says_when_and_how_to_do_it_again() -> None:
    app = Rota("memory://", tz="UTC")

    @app.task(once=Period.day())
    async def report() -> None: ...

    @app.task(unique="done", key="{name}")
    async def greet(name: str) -> None: ...

    async def asks(simulation: Simulation) -> None:
        for bound in (report.bind(), greet.bind("Ada")):
            await app.submit_many([bound])
            await asyncio.sleep(60)
            assert not (await app.submit_many([bound]))[0]
        told = str(await app.why("report"))
        assert f"already_done for '{DAY}': once, last 60 seconds ago" in told
        assert "; it was done 2 minutes ago (2026-11-15 03:00:00+00:00), " in told
        assert f"and `rota reset report --period {DAY}` lets it run again" in told
        assert "and `rota marks clear greet Ada` lets it run again" in str(await app.why("greet", "Ada"))

    simulate(app, START, START + timedelta(hours=1), scenario=asks)


def test_what_is_done_once_per_key_is_reset_by_its_period() -> None:
    app = Rota("memory://", tz="UTC")

    @app.task(once=Period.day(), key="{name}")
    async def digest(name: str) -> None: ...

    async def asks(simulation: Simulation) -> None:
        await app.submit_many([digest.bind("Ada")])
        await asyncio.sleep(60)
        assert not (await app.submit_many([digest.bind("Ada")]))[0]
        assert f"and `rota reset digest --period {DAY}` lets it run again" in str(await app.why("digest", "Ada"))

    simulate(app, START, START + timedelta(hours=1), scenario=asks)


def test_a_late_one_is_explained() -> None:
    app = Rota("memory://", tz="UTC")

    @app.task(once=Period.day(), expect="04:00")
    async def report() -> None: ...

    async def asks(simulation: Simulation) -> None:
        await asyncio.sleep(2 * 3600)
        told = str(await app.why("report"))
        assert "late: once, last 60 minutes ago (not done by 2026-11-15 04:00 UTC); it has not succeeded s" in told
        assert (
            "deadline expect:report makes no runs: it looks whether report of the day was done; it was late last"
            in told
        )
        await report.submit()
        await asyncio.sleep(60)
        assert "; it was done 60 seconds ago (2026-11-15 05:00:00+00:00) after all" in str(await app.why("report"))
        assert (await app.why("expect:report")).kind == "schedule"

    simulate(app, START, START + timedelta(hours=3), scenario=asks)


def test_a_run_of_a_plan_says_which() -> None:
    app = Rota("memory://", tz="UTC")

    @app.task
    async def watch(race: str) -> None: ...

    async def asks(simulation: Simulation) -> None:
        at = START + timedelta(hours=1)
        await app.plan("races", ["R1"], call=watch.bind, at=lambda _: at, key=str, period=DAY)
        (run,) = (await (await app.client().store()).runs(RunQuery(task="watch"))).runs
        assert "plan: plan races of 2026-11-15 made it" in str(await app.why(run.id))
        assert run.state is State.QUEUED

    simulate(app, START, START + timedelta(minutes=30), scenario=asks)
