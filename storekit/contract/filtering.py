"""runs with filters: every condition, every order, page by page, beside a plain predicate over random runs."""

import random
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from rota.domain import codec
from rota.domain.lifecycle import Cancelled, Failed, Snoozed, Succeeded
from rota.domain.policy import Limit, Policy, Share
from rota.domain.run import DEFAULT_QUEUE, Failure, Member, NewRun, Origin, Run, State, after
from rota.domain.spec import TaskSpec
from rota.errors import InvalidOptions
from rota.store import INSTANTS, CountsRuns, Page, RunQuery, matches
from rota.store.paging import count_runs
from storekit.contract.stage import Stage, Staged, ids, new_run

TASKS = ("resize", "mail", "report")
KEYS = (None, "a", "b", "Jürgen/ß")
ERRORS = (Failure("ValueError", "boom 7"), Failure("app.errors.Refused", "no room"), Failure("OSError", ""))
WORKERS = ("ada", "bob")
PERIODS = ("2026-11-15", "2026-11-16")
ONCE = Policy()

Predicate = Callable[[Run], bool]


def drawn(random: random.Random, number: int) -> NewRun:
    period = random.choice(PERIODS)
    origin, member = random.choice(
        [
            (Origin(), None),
            (Origin("touch"), None),
            (Origin("schedule", "nightly", 5.0, period), None),
            (Origin("run_now", "nightly"), None),
            (Origin("retry", "run-of-old"), None),
            (Origin("flow", "race", period=period), Member(f"race@{period}", "today")),
        ]
    )
    key = random.choice(KEYS)
    args = f'{{"path":"{random.choice(["cat.png", "Dog.PNG", "straße"])}"}}'.encode()
    return NewRun(
        queue=random.choice([DEFAULT_QUEUE, DEFAULT_QUEUE, "images"]),
        id=f"id-{number:03}",
        task=random.choice(TASKS),
        key=key,
        body=codec.encode(args, origin, ONCE, member),
        delay=random.choice([0.0, 0.0, 0.0, 50.0, 500.0]),
        priority=random.choice([0, 5]),
        unique_key=f"{number}/u" if random.random() < 0.2 else key if random.random() < 0.1 else None,
        group=None if member is None else member.group,
    )


async def played(stage: Stage, random: random.Random) -> list[Run]:
    """Put, claim, end, cancel and pause runs by chance. Return all runs, the last arrival first."""
    number = 0
    for _ in range(20):
        news = [drawn(random, number + i) for i in range(random.randint(1, 8))]
        number += len(news)
        await stage.store.put(news)
        claimed = (await stage.claim(random.choice(WORKERS), free=random.randint(0, 5), tasks=TASKS)).runs
        for run in claimed:
            failed = Failed(random.choice(ERRORS))
            outcome = random.choice([Succeeded(b"1"), failed, failed, Snoozed(40.0), Cancelled(), None])
            if outcome is not None:
                await stage.end(run, outcome)
        for new in news[:1]:
            command = random.choice(["cancel", "pause", "none"])
            if command == "cancel":
                await stage.cancel(new)
            elif command == "pause":
                await stage.pause(new)
        stage.wait(random.choice([0.0, 7.0, 30.0]))
    return (await stage.store.runs(RunQuery(limit=1000))).runs


def an_instant(random: random.Random, runs: Sequence[Run]) -> float:
    return random.choice(runs).created_at + random.choice([-3.0, 0.0, 20.0])


def condition(random: random.Random, runs: Sequence[Run]) -> tuple[dict[str, Any], Predicate]:
    """Return one condition, and what it means."""
    states = random.sample(list(State), random.randint(1, 3))
    tasks = random.sample([*TASKS, "unknown"], random.randint(1, 2))
    key, period, worker = random.choice(["a", "Jürgen/ß", "7/u"]), random.choice(PERIODS), random.choice(WORKERS)
    origin = random.choice(["submit", "retry", "schedule"])
    error, reason = random.choice(["Refused", "ValueError"]), random.choice(["failed", "cancelled"])
    group = f"race@{period}"
    text = random.choice(["DOG.png", "boom", "id-01", "RESIZE", "Straße", "jürgen"])
    conditions: list[tuple[dict[str, Any], Predicate]] = [
        ({"state": states}, lambda run: run.state in states),
        ({"state": states[0]}, lambda run: run.state is states[0]),
        ({"task": tasks}, lambda run: run.task in tasks),
        ({"task": tasks[0]}, lambda run: run.task == tasks[0]),
        ({"queue": "images"}, lambda run: run.queue == "images"),
        ({"queue": [DEFAULT_QUEUE, "none"]}, lambda run: run.queue == DEFAULT_QUEUE),
        ({"key": key}, lambda run: key in (run.key, run.unique_key)),
        ({"group": group}, lambda run: run.member is not None and run.member.group == group),
        ({"flow": "race"}, lambda run: run.member is not None and run.member.group.startswith("race@")),
        ({"flow": "race", "period": period}, lambda run: run.member is not None and run.member.group == group),
        ({"period": period}, lambda run: run.origin.period == period),
        ({"schedule": "nightly"}, lambda run: run.origin.of == "nightly"),
        ({"origin": origin}, lambda run: run.origin.kind == origin),
        ({"retry_of": "run-of-old"}, lambda run: run.origin.of == "run-of-old"),
        ({"worker": worker}, lambda run: worker in (run.worker, *(one.worker for one in run.attempts))),
        ({"error": error}, lambda run: run.error is not None and run.error.type.split(".")[-1] == error),
        ({"reason": reason}, lambda run: run.reason == reason),
        ({"q": text}, lambda run: text.lower() in _texts(run)),
        _between(random, runs),
    ]
    return random.choice(conditions)


def _texts(run: Run) -> str:
    return "\n".join([run.id, run.task, run.key or "", str(run.error or ""), run.args.decode()]).lower()


def _between(random: random.Random, runs: Sequence[Run]) -> tuple[dict[str, Any], Predicate]:
    by, since, until = random.choice(INSTANTS), an_instant(random, runs), an_instant(random, runs)
    begin = since if random.random() < 0.7 else None
    end = until if random.random() < 0.7 else None

    def within(run: Run) -> bool:
        at = {"created": run.created_at, "due": run.due_at, "finished": run.finished_at}[by]
        if begin is None and end is None:
            return True
        return at is not None and (begin is None or at >= begin) and (end is None or at < end)

    return {"by": by, "since": begin, "until": end}, within


def in_order(runs: Sequence[Run], order: str) -> list[Run]:
    """Return `runs`, of which the last arrival is the first, in another order. Runs of one instant keep their order."""
    if order == "finished":
        return sorted((run for run in runs if run.state.final), key=lambda run: -(run.finished_at or 0))
    if order == "due":
        return sorted((run for run in reversed(runs) if not run.state.final), key=lambda run: run.due_at)
    return list(runs)


class FilterContract(Staged):
    async def all(self, stage: Stage, query: RunQuery) -> list[str]:
        found: list[str] = []
        while True:
            page = await stage.store.runs(query)
            assert len(page.runs) <= query.limit
            assert page.searched_back_to is None
            found += ids(page.runs)
            if page.cursor is None:
                return found
            query = replace(query, cursor=page.cursor)

    @pytest.mark.parametrize("seed", range(3))
    async def test_filters_find_what_a_plain_predicate_finds(self, stage: Stage, seed: int) -> None:
        chance = random.Random(seed)
        runs = await played(stage, chance)
        for _ in range(60):
            some = [condition(chance, runs) for _ in range(chance.randint(1, 3))]
            given: dict[str, Any] = {}
            for words, _ in some:
                given |= words
            holds = [means for words, means in some if words.items() <= given.items()]
            if {"flow", "group", "period"} & given.keys() and len(some) > 1:
                continue  # one may replace a part of another
            order = chance.choice(INSTANTS)
            query = RunQuery(**given, order=order, limit=chance.choice([1, 3, 100]))
            expected = [run for run in in_order(runs, order) if all(means(run) for means in holds)]
            assert await self.all(stage, query) == ids(expected), query
            limited = await count_runs(stage.store, query, at_most=5)
            assert (limited.count, limited.more) == (min(5, len(expected)), len(expected) > 5), query

    async def test_conditions_hold_for_given_ids_too(self, stage: Stage) -> None:
        await stage.put(new_run("a", id="one"), new_run("b", id="two"))
        page = await stage.store.runs(RunQuery(ids=["two", "one"], task="a"))
        assert ids(page.runs) == ["one"]

    async def test_a_search_stops_and_goes_on_from_its_cursor(self, stage: Stage) -> None:
        await stage.put(new_run(id="hay-0", args=b'{"name":"needle"}'))
        for first in range(0, 5200, 1300):
            await stage.put(*(new_run(id=f"hay-{first + i + 1}") for i in range(1300)))
        query, pages = RunQuery(q="NEEDLE"), list[Page]()
        while True:
            pages.append(await stage.store.runs(query))
            if pages[-1].cursor is None:
                break
            query = replace(query, cursor=pages[-1].cursor)
        assert [ids(page.runs) for page in pages] == [[]] * (len(pages) - 1) + [["hay-0"]]
        assert len(pages) > 1
        back_to = [page.searched_back_to for page in pages]
        assert back_to[-1] is None
        times = [at for at in back_to if at is not None]
        assert times == sorted(times, reverse=True)
        assert len(times) == len(pages) - 1

    async def test_a_brief_page_has_a_cursor_that_goes_on_to_all_runs(self, stage: Stage) -> None:
        await stage.put(new_run("rare", id="far"))
        for _ in range(4):
            await stage.put(*(new_run() for _ in range(1300)))
        query, found = RunQuery(task="rare", brief=True), list[str]()
        while True:
            page = await stage.store.runs(query)
            assert (page.searched_back_to is None) == (page.cursor is None), "it says how far it has looked"
            found += ids(page.runs)
            if page.cursor is None:
                break
            query = replace(query, cursor=page.cursor)
        assert found == ["far"]
        assert ids((await stage.store.runs(RunQuery(task="rare"))).runs) == ["far"], "the whole answer at once"

    @pytest.mark.parametrize("seed", range(4))
    async def test_a_store_that_counts_runs_counts_those_that_it_lists(self, stage: Stage, seed: int) -> None:
        dice, store = random.Random(seed), stage.store
        if not isinstance(store, CountsRuns):
            return
        runs = await played(stage, dice)
        for _ in range(40):
            drawn_ = [condition(dice, runs) for _ in range(dice.randint(0, 3))]
            query = RunQuery(**{name: value for given, _ in drawn_ for name, value in given.items()}, brief=True)
            if query.counts:
                listed = Counter((run.task, str(run.state)) for run in runs if matches(run, query))
                assert (await store.counted(query, 1000)).groups == listed, query
                some = await store.counted(query, 3)
                assert sum(some.groups.values()) == min(4, listed.total()), "it stops behind the bound"

    async def test_the_runs_of_a_key_are_on_its_first_page_however_many_others_came_later(self, stage: Stage) -> None:
        await stage.put(new_run(id="far", key="k"))
        for part in range(4):
            others = [new_run(key=f"other{number % 100}" if number % 3 else None) for number in range(1300)]
            await stage.put(*others, new_run(id=f"near-{part}", key="k"))
        page = await stage.store.runs(RunQuery(key="k", brief=True))
        assert ids(page.runs) == ["near-3", "near-2", "near-1", "near-0", "far"]
        assert (page.cursor, page.searched_back_to) == (None, None)
        assert await self.all(stage, RunQuery(key="k", limit=2)) == ids(page.runs)
        assert ids((await stage.store.runs(RunQuery(key="nobody", brief=True))).runs) == []

    async def test_failed_runs_are_listed_by_arrival_in_whatever_order_they_failed(self, stage: Stage) -> None:
        names = [f"run-{number:02}" for number in range(60)]
        await stage.put(*(new_run(TASKS[number % 2], id=name, policy=ONCE) for number, name in enumerate(names)))
        runs = list((await stage.claim(free=60, tasks=TASKS)).runs)
        random.Random(5).shuffle(runs)
        for run in runs:
            await stage.end(run, Cancelled() if run.id.endswith("3") else Failed(ERRORS[0]))
        failed = [name for name in reversed(names) if not name.endswith("3")]
        for limit in (1, 2, 7, 100):
            assert await self.all(stage, RunQuery(state="failed", limit=limit)) == failed
            assert await self.all(stage, RunQuery(state=("failed", "cancelled"), limit=limit)) == names[::-1]
            some = await self.all(stage, RunQuery(state="failed", task=TASKS[1], limit=limit))
            assert some == [name for name in failed if int(name[4:]) % 2]

    async def test_a_search_does_not_look_at_secrets(self, stage: Stage) -> None:
        args = b'{"card":"4111222233334444","name":"Ada","deep":[{"api_key":"k-12345"}]}'
        new = new_run(id="pay", args=args)
        await stage.put(replace(new, body=codec.with_secrets(new.body, ("card",))))
        found = {
            text: ids((await stage.store.runs(RunQuery(q=text))).runs) for text in ("4111", "k-123", "ada", "card")
        }
        assert found == {"4111": [], "k-123": [], "ada": ["pay"], "card": ["pay"]}

    async def test_a_search_with_an_index_fills_its_page(self, stage: Stage) -> None:
        await stage.put(new_run("rare", id="first", key="k"))
        for _ in range(4):
            await stage.put(*(new_run("many") for _ in range(1300)))
        for query in (RunQuery(task="rare"), RunQuery(key="k"), RunQuery(task=["rare", "none"])):
            page = await stage.store.runs(query)
            assert (ids(page.runs), page.cursor, page.searched_back_to) == (["first"], None, None)

    async def test_a_list_by_due_time_has_any_length(self, stage: Stage) -> None:
        """The runs of several lanes, some due at one instant, and runs that are in no lane."""
        await stage.store.declare([TaskSpec("many", share=Share("{tenant}")), TaskSpec("few", limit=Limit(per_key=1))])
        now = await stage.now()
        for number in range(4):
            some = [new_run("many", at=now + n % 700, share=f"s{n % 7}" if n % 2 else None) for n in range(1300)]
            await stage.put(*some, *(new_run("few", key="k", priority=number) for _ in range(3)))
        await stage.put(last := new_run("many"), new_run("few", key="l"))
        await stage.put(new_run("few", needs=(last.id,)))
        assert (await stage.claim(free=3, tasks=["few"])).runs
        found, cursor = list[Run](), None
        while True:
            page = await stage.store.runs(RunQuery(order="due", limit=1000, cursor=cursor))
            found, cursor = [*found, *page.runs], page.cursor
            if cursor is None:
                break
        assert len({run.id for run in found}) == len(found) == 4 * 1303 + 3
        assert [run.due_at for run in found] == sorted(run.due_at for run in found)
        first, end = after(now + 5, 0), after(now + 7, 0)
        soon = await stage.store.runs(RunQuery(order="due", by="due", since=first, until=end, limit=1000))
        assert ids(soon.runs) == [run.id for run in found if first <= run.due_at < end]
        assert (await stage.store.runs(RunQuery(order="due", task="none"))).runs == []

    async def test_a_cursor_of_another_order_is_refused(self, stage: Stage) -> None:
        for cursor, order in (("12", "finished"), ("1.5:12", "created"), ("x:1", "due"), ("-1", "created")):
            with pytest.raises(InvalidOptions, match="not where a list of runs ended"):
                await stage.store.runs(RunQuery(cursor=cursor, order=order))  # type: ignore[arg-type]

    async def test_names_that_nothing_can_have_find_nothing(self, stage: Stage) -> None:
        await stage.put(new_run())
        for name in ("a\x00b", "\ud800"):
            for condition in ("task", "key", "group", "schedule", "flow", "period", "worker", "retry_of", "q"):
                given: dict[str, Any] = {condition: name}
                assert (await stage.store.runs(RunQuery(**given))).runs == []
        for period in ("a\x10b", "x" * 1000):
            assert (await stage.store.runs(RunQuery(flow="day", period=period))).runs == []
