"""Events as the scripts keep and answer them."""

from functools import partial
from typing import Any

import msgspec

from rota.domain.run import DIGITS
from rota.store import EventPage, EventQuery, event_number
from rota.stores.events import EventRow, Known, event_of, gap
from rota.stores.redis.msgpack import pack
from rota.stores.redis.queries import RunScript
from rota.stores.redis.records import STATES
from rota.stores.unreadable import legible


async def read(run: RunScript, query: EventQuery) -> EventPage:
    after, at = (None, 0) if query.after is None else event_number(query.after)
    now, gone, last, same, found = await run("events", pack([after, at, query.limit]))
    known = Known(int(gone), int(last))
    events = [
        event_of(row, _cursor(number, row.at))
        for number, row in zip(map(_number, found[::2]), map(_row, found[1::2]), strict=True)
        if row is not None
    ]
    complete = after is None or (same == 1 and known.has_all_after(after))
    cursor = (query.after or str(known.last)) if complete else str(known.gone)
    if found and (row := _row(found[-1])) is not None:
        cursor = _cursor(_number(found[-2]), row.at)
    elif found:
        cursor = str(_number(found[-2]))
    if not complete:
        events.insert(0, gap(now, str(known.gone)))
    return EventPage(now, events, cursor)


def _number(id: bytes) -> int:
    return int(id.partition(b"-")[0])


def _cursor(number: int, at: float) -> str:
    return f"{number}-{round(at * 10**DIGITS)}"


def _row(text: bytes) -> EventRow | None:
    return legible("row", "event", partial(_read, text))


def _read(text: bytes) -> EventRow:
    values: list[Any] = [None if value is False else value for value in msgspec.msgpack.decode(text)]
    row = msgspec.convert(values, EventRow)
    return row if row.state is None else msgspec.structs.replace(row, state=STATES[row.state].value)
