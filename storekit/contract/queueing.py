"""Queues: which workers may claim a run. All rules of a task count the runs of all queues."""

import pytest

from rota.domain.lifecycle import Failed, Lost, Released, Succeeded
from rota.domain.policy import Limit, Rate
from rota.domain.run import State
from rota.domain.settlement import Verdict
from rota.store import WorkerSeen
from storekit.contract.stage import BOOM, GREET, LEASE, Stage, Staged, ids, new_run, token

IMAGES, MAIL = "images", "mail"


class QueueContract(Staged):
    async def test_a_worker_takes_only_runs_of_its_queues(self, stage: Stage) -> None:
        plain, image, mail = new_run(), new_run(queue=IMAGES), new_run(queue=MAIL)
        await stage.put(plain, image, mail)
        assert ids((await stage.claim("ada", 9, queues=[IMAGES])).runs) == [image.id]
        assert ids((await stage.claim("bob", 9, queues=["default", MAIL])).runs) == [plain.id, mail.id]

    async def test_a_worker_without_queues_takes_the_runs_of_all(self, stage: Stage) -> None:
        news = [new_run(queue=queue) for queue in (MAIL, "default", IMAGES, MAIL)]
        await stage.put(*news)
        assert ids((await stage.claim(free=9)).runs) == ids(news), "in the order of their due times"

    async def test_priority_goes_before_the_due_time_in_all_queues(self, stage: Stage) -> None:
        news = [
            new_run(queue=queue, priority=level)
            for queue, level in ((MAIL, 0), ("default", 1), (IMAGES, 2), ("default", 0))
        ]
        await stage.put(*news)
        found = (await stage.claim(free=9, queues=[IMAGES, MAIL, "default"])).runs
        assert ids(found) == [news[2].id, news[1].id, news[0].id, news[3].id]

    async def test_queues_and_tasks_both_hold(self, stage: Stage) -> None:
        await stage.put(new_run("other", queue=IMAGES), new_run(queue=MAIL), mine := new_run(queue=IMAGES))
        assert ids((await stage.claim(free=9, queues=[IMAGES])).runs) == [mine.id]

    async def test_a_run_shows_its_queue_all_its_life(self, stage: Stage) -> None:
        new, plain = new_run(queue=IMAGES, key="k"), new_run()
        await stage.put(new, plain)
        assert [run.queue for run in await stage.find(new, plain)] == [IMAGES, "default"]
        (run, _) = (await stage.claim(free=2)).runs
        assert (run.id, run.queue, (await stage.see(run)).queue) == (new.id, IMAGES, IMAGES)
        await stage.end(run, Succeeded())
        assert ((await stage.see(run)).state, (await stage.see(run)).queue) == (State.SUCCEEDED, IMAGES)

    @pytest.mark.parametrize("outcome", [Failed(BOOM), Released(), Lost()], ids=lambda outcome: type(outcome).__name__)
    async def test_a_run_that_comes_back_keeps_its_queue(self, stage: Stage, outcome: Failed | Released | Lost) -> None:
        await stage.put(new_run(queue=IMAGES))
        run = await stage.take()
        stage.wait(LEASE + 1)
        assert await stage.end(run, outcome) is Verdict.APPLIED
        stage.wait(3600)
        assert (await stage.claim("bob", 9, queues=[MAIL, "default"])).runs == []
        (again,) = (await stage.claim("bob", 9, queues=[IMAGES])).runs
        assert (again.id, again.queue) == (run.id, IMAGES)

    async def test_a_paused_run_comes_back_to_its_queue(self, stage: Stage) -> None:
        await stage.put(new := new_run(queue=IMAGES))
        await stage.pause(new)
        await stage.resume(new)
        assert (await stage.claim("bob", 9, queues=["default"])).runs == []
        assert ids((await stage.claim("bob", 9, queues=[IMAGES])).runs) == [new.id]

    async def test_a_join_stays_in_the_queue_of_the_run_it_joins(self, stage: Stage) -> None:
        await stage.put(first := new_run(queue=IMAGES, unique="queued"))
        later = new_run(queue=MAIL, unique="queued", join="set", priority=5, args=b'{"name":"Bob"}')
        assert (await stage.admit(later)).run == first.id
        assert (await stage.claim("bob", 9, queues=[MAIL, "default"])).runs == []
        (run,) = (await stage.claim("bob", 9, queues=[IMAGES])).runs
        assert (run.id, run.queue, run.args) == (first.id, IMAGES, b'{"name":"Bob"}')

    async def test_a_run_that_waited_for_another_starts_in_its_own_queue(self, stage: Stage) -> None:
        parent = await stage.running(new_run(queue=MAIL))
        await stage.put(child := new_run(queue=IMAGES, needs=[parent.id]))
        await stage.end(parent, Succeeded())
        assert (await stage.claim("bob", 9, queues=[MAIL])).runs == []
        assert ids((await stage.claim("bob", 9, queues=[IMAGES])).runs) == [child.id]

    async def test_a_unique_key_counts_in_all_queues(self, stage: Stage) -> None:
        await stage.running(new_run(queue=IMAGES, unique="active"))
        assert not await stage.admit(new_run(queue=MAIL, unique="active"))

    async def test_a_limit_counts_the_runs_of_all_queues(self, stage: Stage) -> None:
        await stage.declare(Limit(2))
        await stage.put(*(new_run(queue=queue) for queue in (IMAGES, IMAGES, MAIL, "default")))
        first, second = (await stage.claim("ada", 9, queues=[IMAGES])).runs
        assert (await stage.claim("bob", 9, queues=[MAIL])).runs == []
        await stage.end(first, Succeeded())
        assert len((await stage.claim("bob", 9, queues=[MAIL])).runs) == 1
        assert (await stage.claim("cyd", 9, queues=["default"])).runs == []
        await stage.end(second, Succeeded())
        assert len((await stage.claim("cyd", 9, queues=["default"])).runs) == 1

    async def test_a_limited_task_starts_its_runs_in_the_order_of_all_queues(self, stage: Stage) -> None:
        await stage.declare(Limit(9, per_key=2))
        news = [new_run(queue=queue, key=queue) for queue in (MAIL, "default", IMAGES, MAIL, IMAGES, "default")]
        await stage.put(*news)
        assert ids((await stage.claim(free=9)).runs) == ids(news)

    async def test_a_rate_counts_the_starts_of_all_queues(self, stage: Stage) -> None:
        await stage.declare(rate=Rate(1, per=60))
        await stage.put(new_run(queue=IMAGES), mail := new_run(queue=MAIL))
        assert len((await stage.claim("ada", 9, queues=[IMAGES])).runs) == 1
        claim = await stage.claim("bob", 9, queues=[MAIL])
        assert claim.runs == []
        assert claim.wake == pytest.approx(60, abs=5)
        stage.wait(61)
        assert ids((await stage.claim("bob", 9, queues=[MAIL])).runs) == [mail.id]

    async def test_a_suspect_of_another_queue_is_no_concern_of_a_worker(self, stage: Stage) -> None:
        (suspect,) = await stage.suspects(new_run(queue=IMAGES))
        stage.wait(3600)
        await stage.put(plain := new_run())
        assert ids((await stage.claim("bob", 9, queues=["default"])).runs) == [plain.id]
        assert ids((await stage.claim("cyd", 9, queues=[IMAGES])).runs) == [suspect.id]

    async def test_a_store_shows_the_queues_of_its_workers(self, stage: Stage) -> None:
        await stage.claim("ada", queues=[IMAGES, MAIL])
        await stage.claim("bob")
        seen = (await stage.store.rows(WorkerSeen)).items
        assert [(row.name, row.tasks, row.queues) for row in seen] == [
            ("ada", (GREET,), (IMAGES, MAIL)),
            ("bob", (GREET,), ()),
        ]

    async def test_a_worker_may_come_back_with_other_queues(self, stage: Stage) -> None:
        await stage.put(new_run(queue=IMAGES), mail := new_run(queue=MAIL), new_run(queue=IMAGES))
        assert len((await stage.claim(queues=[IMAGES])).runs) == 1
        assert ids((await stage.claim(free=9, queues=[MAIL])).runs) == [mail.id]
        assert (await stage.store.rows(WorkerSeen)).items[0].queues == (MAIL,)
        assert len((await stage.claim(free=9)).runs) == 1


class QueueParkContract(Staged):
    async def test_a_queue_without_a_worker_does_not_hold_up_a_key_in_another(self, stage: Stage) -> None:
        await stage.declare(Limit(per_key=1))
        run = await stage.running(new_run(key="k", queue=MAIL))
        stuck = [new_run(key="k", queue=IMAGES, priority=9) for _ in range(3)]
        waiting = [new_run(key="k", queue=MAIL) for _ in range(3)]
        await stage.put(*stuck, *waiting)
        assert (await stage.claim("eve", 9)).runs == [], "all are parked"
        for new in waiting:
            await stage.end(run, Succeeded())
            (run,) = (await stage.claim("bob", 9, queues=[MAIL])).runs
            assert run.id == new.id
        await stage.end(run, Succeeded())
        assert ids((await stage.claim("cyd", 9, queues=[IMAGES])).runs) == [stuck[0].id]

    async def test_a_rate_opens_a_key_in_all_queues(self, stage: Stage) -> None:
        await stage.declare(rate=Rate(1, per=60, per_key=True))
        await stage.put(*(new_run(key="k", queue=queue) for queue in (MAIL, IMAGES, MAIL)))
        assert len((await stage.claim("ada", 9, queues=[MAIL])).runs) == 1
        assert (await stage.claim("eve", 9)).runs == []
        stage.wait(61)
        assert len((await stage.claim("bob", 9, queues=[MAIL])).runs) == 1
        stage.wait(61)
        assert len((await stage.claim("cyd", 9, queues=[IMAGES])).runs) == 1

    async def test_a_limit_that_changes_unparks_the_runs_of_all_queues(self, stage: Stage) -> None:
        await stage.declare(Limit(per_key=1))
        await stage.running(new_run(key="k", queue=MAIL))
        await stage.put(*(new_run(key="k", queue=queue) for queue in (IMAGES, MAIL, "default")))
        assert (await stage.claim("eve", 9)).runs == []
        assert await stage.declare(Limit(per_key=4))
        assert len((await stage.claim("bob", 9)).runs) == 3


class QueueHintContract(Staged):
    async def test_a_put_hints_a_worker_of_its_queue(self, stage: Stage) -> None:
        await stage.claim("ada", queues=[IMAGES])
        await stage.claim("bob", queues=[MAIL])
        async with stage.listening() as ear:
            await stage.put(new_run(queue=MAIL), new_run(queue=MAIL))
            assert await ear.workers() == {"bob"}
        async with stage.listening() as ear:
            await stage.put(new_run())
            assert "ada" not in await ear.workers()

    async def test_a_worker_of_all_queues_is_hinted_for_any(self, stage: Stage) -> None:
        await stage.claim("ada")
        async with stage.listening() as ear:
            await stage.put(new_run(queue=MAIL))
            assert await ear.workers() == {"ada"}

    async def test_a_seat_of_a_limit_that_is_free_again_hints_the_workers_of_each_queue(self, stage: Stage) -> None:
        """The run that may start now may be in any queue."""
        await stage.declare(Limit(1))
        run = await stage.running(new_run(queue=IMAGES))
        await stage.put(waiting := new_run(queue=MAIL))
        await stage.claim("ada", queues=[IMAGES])
        await stage.claim("bob", queues=[MAIL])
        async with stage.listening() as ear:
            await stage.end(run, Succeeded())
            assert "bob" in await ear.workers()
        assert ids((await stage.claim("bob", 9, queues=[MAIL])).runs) == [waiting.id]

    async def test_a_retry_hints_a_worker_of_its_queue(self, stage: Stage) -> None:
        await stage.put(new_run(queue=MAIL))
        run = await stage.take("eve")
        await stage.claim("ada", queues=[IMAGES])
        await stage.claim("bob", queues=[MAIL])
        async with stage.listening() as ear:
            await stage.end(run, Released())
            assert await ear.workers() == {"bob"}

    async def test_a_worker_does_not_wake_for_a_queue_that_it_does_not_serve(self, stage: Stage) -> None:
        await stage.put(new_run(queue=IMAGES, delay=600))
        assert (await stage.claim("ada", queues=[MAIL])).wake is None
        assert (await stage.claim("bob", queues=[IMAGES])).wake == pytest.approx(600, abs=30)
        assert (await stage.claim("cyd")).wake is None, "bob wakes for it"

    async def test_workers_of_other_queues_have_a_place_of_their_own(self, stage: Stage) -> None:
        await stage.put(new_run(queue=IMAGES, delay=600), new_run(queue=MAIL, delay=600))
        assert (await stage.claim("ada", queues=[IMAGES])).wake == pytest.approx(600, abs=30)
        assert (await stage.claim("bob", queues=[MAIL])).wake == pytest.approx(600, abs=30)

    async def test_a_run_is_handed_over_to_a_worker_of_its_queue(self, stage: Stage) -> None:
        async with stage.listening() as ear:
            await stage.claim("ada", ready=True, queues=[IMAGES])
            await stage.claim("bob", ready=True, queues=[MAIL])
            await stage.put(new := new_run(queue=IMAGES))
            handed = await ear.handed()
        if handed is not None:
            assert (handed.worker, handed.token) == ("ada", token("ada", 1))
            assert (handed.run.id, handed.run.queue) == (new.id, IMAGES)
        assert (await stage.claim("bob", queues=[MAIL])).runs == []
        assert ids((await stage.claim("ada", queues=[IMAGES])).runs) == [new.id]
