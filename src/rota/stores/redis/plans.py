"""Long plans on Redis: staged in parts, and carried out by short scripts that nobody can look between.

A plan with all its runs and cancels as one script would hold the server for 10 to 40 us a run. So its parts are stored
first, where no verb looks. Once the plan is under way, every verb of this version answers that it is, and its
caller helps to carry it out before it sends the verb again. So the parts come together for everybody, whoever dies
meanwhile.
"""

import uuid
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Protocol

import msgspec

from rota.domain.decision import Decision, Reason
from rota.domain.run import NewRun
from rota.errors import StoreCorrupt, StoreUnavailable
from rota.store import Plan, Reply
from rota.stores import bounds
from rota.stores.redis.msgpack import opaque, pack
from rota.stores.redis.records import new_item
from rota.stores.redis.rows import reason_of

MOST = bounds.REDIS.planned or bounds.REDIS_PART
"""Runs in one part."""
SHORT = MOST
"""A plan of so many runs is one script, if its group does not have more."""
KEPT = 1000
"""Names of unique keys in one part."""

_decisions = msgspec.msgpack.Decoder(list[tuple[int, str, str]])


class LongPlan(Exception):
    """The group of a plan has so many runs that the plan has to be carried out in parts."""


class Verb(Protocol):
    def __call__(self, verb: str, *words: str | bytes | int | float) -> Awaitable[list[Any]]: ...


async def carry_out(run: Verb, token: str = "") -> list[Any]:
    """Go on until the plan of `token` is carried out; without one, the plan that is under way. Return the last
    answer."""
    while (answer := await run("plan", token))[1] == 1:
        pass
    return answer


async def put_plan(
    run: Verb,
    put: Callable[..., Awaitable[Reply[Decision]]],
    runs: Sequence[NewRun],
    plan: Plan,
    *entry: bytes,
) -> Reply[Decision]:
    """Put a plan: a short one by one script, `put`, a long one in parts. `entry` is its audit entry, if it has one."""
    if len(runs) <= SHORT:
        try:
            return await put(runs, pack([plan.group, list(plan.keep), plan.note]), *entry)
        except LongPlan:
            pass
    token, keep = uuid.uuid4().hex, sorted(plan.keep)
    names = [keep[at : at + KEPT] for at in range(0, len(keep), KEPT)]
    items = [[new_item(new) for new in runs[at : at + MOST]] for at in range(0, len(runs), MOST)]
    parts = [pack([[], part]) for part in names] + [pack([part, []]) for part in items]
    for number, part in enumerate(parts):
        await run("stage", token, str(number), part)
    await run("stage", token, "head", pack([plan.group, plan.note, len(parts), *map(opaque, entry)]))
    now, state, *failure = await carry_out(run, token)
    if state < 0:
        raise StoreUnavailable("the store has forgotten a plan before it was carried out")
    if failure[0]:
        raise StoreCorrupt(f"a plan could not be carried out: {failure[0].decode(errors='replace')}")
    decisions = await _answers(run, token, runs, len(names), len(items))
    await run("plan", token, "forget")
    return Reply(now, decisions)


async def _answers(run: Verb, token: str, runs: Sequence[NewRun], first: int, parts: int) -> list[Decision]:
    """The decisions of a plan, in the order of `runs`, then those of the runs that it cancelled. The runs are in so
    many `parts`, from the part `first` on."""

    async def read(name: str) -> list[tuple[int, str, str]]:
        text: bytes | None = (await run("plan", token, name))[1]
        return [] if text is None else _decisions.decode(text)

    decisions = [Decision(new.id, Reason.ACCEPTED) for new in runs]
    for part in range(parts):
        for place, id, reason in await read(f"d{first + part}"):
            decisions[part * MOST + place] = Decision(id, reason_of(reason.encode()))
    number = 0
    while gone := await read(f"c{number}"):
        decisions += [Decision(id, reason_of(reason.encode())) for _, id, reason in gone]
        number += 1
    return decisions
