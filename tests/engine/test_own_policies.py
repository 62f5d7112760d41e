"""The timeout, the retry and `lost` of one submit or of one schedule, beside those of the task."""

from datetime import timedelta

import pytest

from rota import Every, InvalidOptions, Retry, Rota, RunFailed
from rota.domain.policy import Policy
from rota.views.schedules import policy_of


@pytest.fixture
def app() -> Rota:
    return Rota("memory://")


async def test_the_retry_of_a_submit_goes_before_the_rules_of_the_task(app: Rota) -> None:
    calls: list[str] = []

    @app.task(retry=Retry(5, delay=0, rules={ValueError: Retry(0)}))
    async def strict(text: str) -> None:
        calls.append(text)
        raise ValueError(text)

    @app.task(retry=Retry(0), executor="thread")
    def plain(text: str) -> None:
        calls.append(text)
        raise ValueError(text)

    async with app:
        runs = [
            await strict.using(retry=Retry(2, delay=0)).submit("own"),
            await strict.submit("rule"),
            await plain.using(retry=Retry(1, delay=0)).submit("thread"),
        ]
        for run in runs:
            with pytest.raises(RunFailed):
                await run.result(timeout=10)
    assert sorted(calls) == ["own"] * 3 + ["rule"] + ["thread"] * 2


async def test_a_retried_run_keeps_the_policy_of_its_submit(app: Rota) -> None:
    @app.task
    async def fail() -> None:
        raise ValueError

    async with app:
        run = await fail.using(timeout="1m", retry=Retry(1, delay=0), lost="fail").submit()
        with pytest.raises(RunFailed):
            await run.result(timeout=10)
        again = await run.retry()
        with pytest.raises(RunFailed):
            await again.result(timeout=10)
        seen = await again.refresh()
    assert seen.policy == Policy(retry=Retry(1, delay=0), timeout=60.0, lost="fail", own_retry=True)
    assert seen.failures == 2


async def test_using_goes_before_the_schedule_and_the_schedule_before_the_task(app: Rota) -> None:
    @app.task(timeout=60, retry=Retry(3), lost="fail", max_losses=2)
    async def work() -> None: ...

    put, every = app.schedules.put, Every(minutes=5)
    of_task = policy_of(await put("task", every, work.bind()))
    of_schedule = policy_of(await put("schedule", every, work.bind(), timeout=30, retry=Retry(2), lost="retry"))
    bound = work.using(timeout=timedelta(seconds=5)).bind()
    of_using = policy_of(await put("using", every, bound, timeout=30, retry=Retry(2)))

    assert of_task == Policy(Retry(3), 60.0, "fail", 2)
    assert of_schedule == Policy(Retry(2), 30.0, "retry", 2, own_retry=True)
    assert of_using == Policy(Retry(2), 5.0, "fail", 2, own_retry=True)


async def test_the_runs_of_a_schedule_have_its_policy(app: Rota) -> None:
    @app.task(retry=Retry(5, delay=0))
    async def fail() -> None:
        raise ValueError

    async with app:
        await app.schedules.put("often", Every(hours=1), fail.bind(), retry=Retry(1, delay=0), timeout=9)
        run = await app.schedules.run_now("often")
        with pytest.raises(RunFailed):
            await run.result(timeout=10)
        seen = await run.refresh()
    assert (seen.failures, seen.policy.timeout) == (2, 9.0)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"timeout": 0}, "timeout=0.0: more than 0 seconds"),
        ({"timeout": [5]}, "timeout=.*a number of seconds, a timedelta"),
        ({"timeout": "soon"}, "timeout='soon'"),
        ({"retry": 3}, r"write retry=Retry\("),
        ({"retry": Retry(1, rules={ValueError: Retry(0)})}, "give the rules to the task"),
        ({"lost": "never"}, "choose 'retry'"),
    ],
)
async def test_wrong_values_are_refused_at_the_submit(app: Rota, options: dict[str, object], words: str) -> None:
    @app.task
    async def work() -> None: ...

    with pytest.raises(InvalidOptions, match=words):
        await work.using(**options).submit()  # type: ignore[arg-type]
    with pytest.raises(InvalidOptions, match=words):
        await app.schedules.put("often", Every(hours=1), work.using(**options).bind())  # type: ignore[arg-type]


async def test_those_who_give_no_options_store_no_more_bytes(app: Rota) -> None:
    @app.task
    async def work() -> None: ...

    seen = await (await work.submit()).refresh()
    assert seen.body == b'{"v":1,"args":{}}'
