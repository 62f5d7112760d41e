"""Log tails: what the handler of a task with `logs=True` logs is stored with its attempt."""

import logging
from collections.abc import Iterator
from typing import Annotated

import pytest

from rota import Retry, Rota, Secret
from rota.domain.tail import CUT, TAIL, Tail, packed, unpacked
from tests.engine import process_tasks
from tests.web.conftest import Caller
from tests.web.conftest import caller as caller

log = logging.getLogger("shop")


@pytest.fixture(autouse=True)
def level() -> Iterator[None]:
    log.setLevel(logging.INFO)
    yield
    log.setLevel(logging.NOTSET)


@pytest.fixture
def app() -> Rota:
    app = Rota("memory://")

    @app.task(logs=True, retry=Retry(2, delay=0))
    async def on_loop(word: Annotated[str, Secret]) -> None:
        log.info("hello \x1b[31m%s", word)
        raise ValueError("boom")

    @app.task(logs=True)
    def in_thread(word: str) -> None:
        log.info("hello %s", word)
        logging.getLogger("rota.own").warning("not of the handler")

    @app.task
    def silent(word: str) -> None:
        log.info("hello %s", word)

    app.task(name="in_child", executor="process", logs=True)(process_tasks.say)
    return app


async def test_each_attempt_keeps_what_it_logged_and_no_other(app: Rota, caller: Caller) -> None:
    loop = await app.tasks["on_loop"].submit("a-secret")
    thread = await app.tasks["in_thread"].submit("thread")
    silent = await app.tasks["silent"].submit("nobody")
    child = await app.tasks["in_child"].submit("child")
    async with app:
        for run in (loop, thread, silent, child):
            await app.client().ended(run.id, 30)
    first, *others = [attempt.logged for attempt in (await loop.refresh()).attempts]
    assert len(others) == 2
    assert first.endswith(" INFO shop: hello \x1b[31m***\n"), "secrets are hidden here too"
    (text,) = [attempt.logged for attempt in (await thread.refresh()).attempts]
    assert text.endswith("INFO shop: hello thread\n")
    assert "not of the handler" not in text
    assert [attempt.log for attempt in (await silent.refresh()).attempts] == [""], "who does not want it pays nothing"
    (text,) = [attempt.logged for attempt in (await child.refresh()).attempts]
    assert text.endswith("WARNING shop: hello child\n")
    (item, *_) = (await caller().get(f"/api/v1/runs/{loop.id}/log")).json()["items"]
    assert item["text"].endswith("shop: hello ***\n"), "without terminal sequences"
    assert (await caller("viewer").get(f"/api/v1/runs/{loop.id}/log")).status_code == 403
    view = (await caller().get(f"/api/v1/runs/{thread.id}")).json()
    assert [attempt["log"] for attempt in view["attempts"]] == [True], "lists carry no logs"


def test_only_the_end_of_a_long_log_is_kept() -> None:
    tail = Tail()
    for number in range(20_000):
        tail.add(f"line {number}")
    text = tail.text()
    assert (text.startswith(CUT), text.endswith("line 19999\n"), len(text) <= TAIL) == (True, True, True)
    tail.add("x" * 1_000_000)
    assert len(tail.text()) <= TAIL
    assert unpacked(packed(text)) == text
    assert [unpacked(each) for each in ("", "not packed", "🦉")] == ["", "", ""]
