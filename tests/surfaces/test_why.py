"""Why did it not run? Each thing that can hold work up is named in the answer."""

import pytest

from rota import Every, Refused, Rota, UnknownTask
from rota.domain.lifecycle import Snoozed
from rota.store import ClaimRequest, Command, Report, Scope
from rota.task import definition_of
from tests.surfaces.called import Called, waiting
from tests.surfaces.project import Project
from tests.surfaces.why_scene import Scene


@pytest.fixture
def scene() -> Scene:
    return Scene()


async def test_nobody_is_there_to_do_it(scene: Scene) -> None:
    await scene.fetch.submit(1)
    assert await scene.told("fetch") == "no worker is alive: start one with `rota worker`"


async def test_workers_are_there_but_none_knows_the_task(scene: Scene) -> None:
    await scene.fetch.submit(1)
    await (await scene.store()).claim(ClaimRequest("bob", 1, ["other"], 1, 30))
    assert "none knows fetch" in await scene.told("fetch")


async def test_the_last_worker_that_knew_it_is_gone(scene: Scene) -> None:
    await scene.publish()
    await scene.work()
    scene.backend.skew += 120
    silent = "(one that knows fetch fell silent 2 minutes ago)"
    assert await scene.told("fetch") == f"no worker is alive: start one with `rota worker` {silent}"
    await (await scene.store()).claim(ClaimRequest("bob", 1, ["other"], 1, 30))
    advice = f"start one that imports its code {silent}"
    assert await scene.told("fetch") == f"workers are alive, but none knows fetch: {advice}"


async def test_a_worker_that_renews_but_does_not_claim_is_named(scene: Scene) -> None:
    """A call holds its interpreter, or blocks its event loop; a worker that has died is not taken for one of these."""
    run = await scene.boom.submit(1)
    await scene.work(report=Report(lease=30.0))
    store = await scene.store()
    for _ in range(4):
        scene.backend.skew += 10
        lease = (await scene.app.handle(run.id).refresh()).lease
        told = await scene.told(run.id)
        assert told.startswith("it runs on ada"), "silent for a lease at most, which a worker that died would be too"
        await store.renew([lease], 30.0)
    blocked = (
        "ada last claimed 40 seconds ago, but its leases are renewed: "
        "a call blocks its event loop or holds its interpreter; see its log"
    )
    assert await scene.told(run.id) == blocked
    assert blocked in [fact.text for fact in (await scene.app.why("boom")).facts]
    scene.backend.skew += 31
    assert "its lease lapsed 1 second ago" in await scene.told(run.id)


async def test_its_task_is_paused_and_by_whom(scene: Scene) -> None:
    await scene.publish()
    await scene.work()
    store = await scene.store()
    await store.control(Command.PAUSE, ["fetch"], "the site is down", "ops@host", Scope.TASKS)
    answer = await scene.told("fetch")
    assert "fetch is paused" in answer
    assert "ops@host" in answer
    assert "the site is down" in answer
    assert "rota tasks resume fetch" in answer


async def test_a_key_and_a_run_of_a_paused_task_name_who_paused_it_and_why(scene: Scene) -> None:
    await scene.publish()
    await scene.work()
    run = await scene.fetch.submit(1)
    store = await scene.store()
    await store.control(Command.PAUSE, ["fetch"], "the site is down", "ops@host", Scope.TASKS)
    scene.backend.skew += 600
    await scene.work()
    expected = "fetch is paused (10 minutes ago by ops@host) (the site is down); `rota tasks resume fetch`"
    assert await scene.told("fetch", "1") == expected
    assert await scene.told(run.id) == expected


async def test_the_pause_of_a_run_is_not_taken_for_that_of_its_task(scene: Scene) -> None:
    await scene.publish()
    await scene.work()
    run = await scene.mail.submit("ann")
    store = await scene.store()
    await store.control(Command.PAUSE, ["mail"], "the server is down", "ops@host", Scope.TASKS)
    await store.control(Command.PAUSE, [run.id], "not her", "eve@host")
    assert await scene.told("mail") == "mail is paused; `rota tasks resume mail`"


async def test_its_limit_is_reached(scene: Scene) -> None:
    await scene.publish()
    await scene.fetch.submit(1)
    await scene.work()
    await scene.fetch.submit(2)
    assert await scene.told("fetch") == "1 of 1 run: the limit is reached"


async def test_a_rate_lets_the_next_start_later(scene: Scene) -> None:
    await scene.publish()
    await scene.mail.submit("ann")
    assert len(await scene.work()) == 1
    late = await scene.mail.submit("bob")
    scene.backend.skew += 600
    assert await scene.work() == []
    expected = "at most 1 start per 3600 s: the next may start later, in 50 minutes at most"
    assert await scene.told("mail") == expected
    assert await scene.told(late.id) == expected


async def test_a_join_with_other_arguments_is_no_start(scene: Scene) -> None:
    await scene.publish()
    once = scene.mail.using(key="k", unique="queued")
    run = await once.submit("ann")
    await scene.end(outcome=Snoozed(9000.0))
    late = await scene.mail.submit("bob")
    scene.backend.skew += 600
    assert await scene.work() == []
    await once.submit("eve")
    assert (await scene.told(late.id)).endswith("the next may start later, in 50 minutes at most")
    await run.cancel()
    told = str(await scene.app.why(run.id))
    assert "attempt: snoozed 10 minutes ago" in told
    assert "attempt: a join replaced the arguments 0 seconds ago" in told


async def test_a_rate_of_a_key_holds_that_key_alone(scene: Scene) -> None:
    await scene.publish()
    await scene.ring.submit("ann")
    await scene.work()
    held = await scene.ring.submit("ann")
    free = await scene.ring.submit("bob")
    scene.backend.skew += 2
    assert (
        await scene.told(held.id)
        == "at most 1 start per 3600 s per key: the next may start later, in 60 minutes at most"
    )
    assert not (await scene.app.why(free.id)).held
    assert await scene.work() == [free.id]  # and parks the other
    assert "its rate lets it" in await scene.told(held.id)


async def test_a_rate_that_is_open_holds_nothing(scene: Scene) -> None:
    await scene.publish()
    await scene.mail.submit("ann")
    await scene.end()
    scene.backend.skew += 3601
    run = await scene.mail.submit("bob")
    scene.backend.skew += 2
    await scene.work(free=0)
    assert not (await scene.app.why(run.id)).held
    assert "at most 1 start per 3600 s" in str(await scene.app.why(run.id))


async def test_it_is_not_due_yet(scene: Scene) -> None:
    await scene.publish()
    await scene.work()
    run = await scene.fetch.using(delay=3600).submit(1)
    assert "is due in 60 minutes" in await scene.told(run.id)
    assert "is due in 60 minutes" in await scene.told("fetch")


async def test_a_paused_run_and_a_disabled_task_say_so(scene: Scene) -> None:
    await scene.publish()
    await scene.work()
    run = await scene.fetch.submit(1)
    await run.pause()
    assert f"rota runs resume {run.id}" in await scene.told(run.id)

    off = Rota(scene.backend, name="off")
    task = off.task(name="off", enabled=False)(lambda: None)
    await (await scene.store()).declare([definition_of(task).spec])
    await (await scene.store()).claim(ClaimRequest("bob", 1, ["off"], 1, 30))
    words = "off is disabled in its code or settings: its runs wait, and new ones are refused"
    assert await scene.told("off") == f"{words}; set enabled=true and restart its workers"


async def test_a_key_rests_and_then_its_breaker_is_open(scene: Scene) -> None:
    await scene.publish()
    await scene.summarise.touch("u1")
    scene.backend.skew += 61
    await scene.end(fail=True)
    assert not await scene.summarise.touch("u1")
    assert "'u1': it rests; new runs are taken again in 10 minutes" in await scene.told("summarise", "u1")
    assert "resting for 'u1': once" in str(await scene.app.why("summarise", "u1"))

    scene.backend.skew += 601
    await scene.summarise.touch("u1")
    scene.backend.skew += 61
    await scene.end(fail=True)
    scene.backend.skew += 601
    assert not await scene.summarise.touch("u1")
    await scene.work()
    assert "its breaker is open after 2 failed runs" in await scene.told("summarise", "u1")


async def test_a_schedule_is_paused_ended_or_next(scene: Scene) -> None:
    await scene.publish()
    await scene.work()
    assert "schedule fetch (every hour) is next in 60 minutes" in str(await scene.app.why("fetch"))
    await scene.app.schedules.pause("fetch", "holidays", "ops")
    assert "holidays" in await scene.told("fetch")
    await scene.app.schedules.put("nightly", "daily 03:00", scene.fetch.bind(7))
    assert "is next" in str(await scene.app.why("nightly"))


async def test_schedules_that_share_a_key_each_have_their_own_note(scene: Scene) -> None:
    await scene.publish()
    await scene.work()
    for id in ("dawn", "dusk"):
        await scene.app.schedules.put(id, "daily 03:00", scene.fetch.bind(7))
    await scene.app.schedules.pause("dawn", "too early", "ann")
    await scene.app.schedules.pause("dusk", "too late", "bob")
    scene.backend.skew += 600
    await scene.work()
    assert await scene.told("dawn") == "schedule dawn is paused (too early); `rota schedules resume dawn`"
    assert "is paused (10 minutes ago by bob) (too late)" in await scene.told("dusk")


async def test_who_paused_is_not_told_where_it_may_be_another(scene: Scene) -> None:
    await scene.publish()
    await scene.work()
    for id, by in (("dawn", "ann"), ("dusk", "bob")):
        await scene.app.schedules.put(id, "daily 03:00", scene.fetch.bind(7))
        await scene.app.schedules.pause(id, None, by)
    assert await scene.told("dawn") == "schedule dawn is paused; `rota schedules resume dawn`"


async def test_a_due_schedule_that_no_live_worker_fires_is_held(scene: Scene) -> None:
    await scene.publish()
    scene.backend.skew += 3601
    await scene.work()
    assert not (await scene.app.why("fetch")).held
    scene.backend.skew += 600
    await scene.work()
    answer = await scene.told("fetch")
    assert "schedule fetch (every hour) was due 10 minutes ago" in answer
    assert answer.endswith(", and nobody has fired it: see the log of the workers")


async def test_a_due_schedule_without_workers_waits_for_one(scene: Scene) -> None:
    await scene.app.schedules.put("dawn", Every(hours=1), scene.mail.bind("ann"))
    scene.backend.skew += 3660
    assert await scene.told("dawn") == "no worker is alive: start one with `rota worker`"


async def test_how_often_it_was_refused_and_when_last(scene: Scene) -> None:
    await scene.publish()
    await scene.work()
    for _ in range(3):
        await scene.summarise.touch("u2")
        scene.backend.skew += 10
    assert "joined for 'u2': 2 times, first 20 seconds ago, last 10 seconds ago" in str(
        await scene.app.why("summarise", "u2")
    )


async def test_a_window_says_until_when_it_keeps_others_out_and_when_it_is_over(scene: Scene) -> None:
    @scene.app.task(key="{n}", unique="done", within=600)
    async def remind(n: int) -> None: ...

    @scene.app.task(key="{n}", unique="done", within=600, unique_in="invoice")
    async def bill(n: int) -> None: ...

    @scene.app.task(key="{n}", unique="done", within=600, unique_in="invoice")
    async def refund(n: int) -> None: ...

    await scene.publish()
    for task in (remind, bill):
        await task.submit(17)
    await scene.end()
    scene.backend.skew += 100
    for task in (remind, refund):
        with pytest.raises(Refused):
            await task.submit(17)
        until = "which keeps others out until in 8 minutes (2026-11-16 12:10:00+00:00)"
        assert until in str(await scene.app.why(task.name, "17"))
    scene.backend.skew += 600
    for task in (remind, refund):
        assert "its window ended" in str(await scene.app.why(task.name, "17"))
        assert await task.submit(17)


async def test_what_became_of_a_run_that_ended(scene: Scene) -> None:
    await scene.publish()
    run = await scene.fetch.submit(1)
    await scene.end(fail=True)
    answer = await scene.app.why(run.id)
    assert not answer.held
    assert "failed" in answer.answer
    assert "Boom: no" in answer.answer


async def test_an_unknown_name_is_refused_with_the_nearest(scene: Scene) -> None:
    await scene.publish()
    with pytest.raises(UnknownTask, match="did you mean fetch"):
        await scene.app.why("fetsh")


def test_the_command_says_it_in_words_and_in_json(project: Project) -> None:
    assert project.rota("submit", "greet", "name=Ada").code == 0
    spoken = project.rota("why", "greet")
    assert (spoken.code, spoken.err) == (0, "")
    assert spoken.out.startswith("task greet: no worker is alive")
    told = project.rota("why", "greet", "--json").json
    assert told["held"] is True
    assert told["facts"][0]["about"] == "workers"
    assert project.rota("why", "gret").code == 2


def test_the_end_of_a_runs_id_will_do(rota: Called) -> None:
    rota.put(waiting("019a0000-0000-7000-8000-aaaa520bec67"), waiting("019a0000-0000-7000-8000-bbbb520bec67"))
    assert rota.json("why", "aaaa520bec67")["subject"] == "019a0000-0000-7000-8000-aaaa520bec67"
    rota("why", "520bec67", code=2)
    assert "fits 2 runs" in rota.err
    rota("why", "ffffff", code=2)
    assert "nothing is known of ffffff" in rota.err
    rota("why", "67", code=2)
    assert "nothing is known of 67" in rota.err


async def test_a_run_in_a_queue_that_nobody_serves(scene: Scene) -> None:
    run = await scene.boom.using(queue="images").submit(1)
    store = await scene.store()
    await store.claim(ClaimRequest("bob", 1, ["boom"], 1, 30, queues=["mail"]))
    words = "no live worker serves queue images: start one with `rota worker --queues images`"
    assert (await scene.app.why(run.id)).answer == words
    assert (await scene.app.why("boom")).answer == words
    await store.claim(ClaimRequest("cyd", 1, ["boom"], 0, 30, queues=["images"]))
    assert "workers: 1 live worker knows boom and serves queue images" in str(await scene.app.why(run.id))


async def test_a_run_that_takes_turns_says_where_it_stands(scene: Scene) -> None:
    @scene.app.task(share="{tenant}")
    async def export(tenant: str) -> None: ...

    *_, last = await scene.app.submit_many([export.bind(tenant) for tenant in ("big", "big", "big", "small")])
    (fourth,) = await scene.app.submit_many([export.bind("big")])
    await scene.work(free=0)
    assert "share: it is the next of 'small', and 1 other share takes turns with it" in str(
        await scene.app.why(last.id)
    )
    assert "share: 3 due runs of 'big' before it, and 1 other share takes" in str(await scene.app.why(fourth.id))
