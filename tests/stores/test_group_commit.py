"""Group commit: every question is answered, whenever it comes."""

import asyncio
from collections.abc import Sequence

import pytest

from rota.store import Reply
from rota.stores.group_commit import GroupCommit


async def echo(questions: Sequence[int]) -> Reply[int]:
    return Reply(0.0, list(questions))


@pytest.mark.parametrize("direct", [False, True])
async def test_a_caller_that_asks_again_as_soon_as_it_is_answered_is_answered_again(direct: bool) -> None:
    group = GroupCommit(echo, most=10, direct=direct)

    async def ask(first: int) -> list[int]:
        return [answer for n in range(first, first + 20) for answer in (await group.add([n])).items]

    async with asyncio.timeout(30):
        answers = tuple(await asyncio.gather(ask(0), ask(100)))
    assert answers == (list(range(20)), list(range(100, 120)))


async def test_what_comes_while_a_call_is_under_way_goes_together() -> None:
    calls: list[list[int]] = []
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def send(questions: Sequence[int]) -> Reply[int]:
        calls.append(list(questions))
        begun.set()
        await go_on.wait()
        return Reply(0.0, list(questions))

    group = GroupCommit(send, most=3)
    first = asyncio.create_task(group.add([1]))
    await begun.wait()
    others = [asyncio.create_task(group.add([n])) for n in (2, 3, 4, 5)]
    await asyncio.sleep(0)
    go_on.set()
    assert [(await answer).items for answer in (first, *others)] == [[1], [2], [3], [4], [5]]
    assert calls == [[1], [2, 3, 4], [5]]
