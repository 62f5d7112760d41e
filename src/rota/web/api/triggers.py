"""Triggers: explain one that nobody has put yet."""

import asyncio
from datetime import UTC, datetime
from typing import Annotated, Any
from zoneinfo import ZoneInfo

from msgspec import Meta, Struct

from rota.views.schedules import own_zone
from rota.views.triggers import TriggerView, read_trigger, trigger_view
from rota.web.inputs import unix
from rota.web.rights import Right
from rota.web.routes import API, Answer, Call, Moment, NoQuery, Route, TriggerText, post


class TriggerBody(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """`text` is a trigger such as `daily 09:00`. `tz` is its zone, if it names none. `after`: as if it were then."""

    text: TriggerText
    tz: Annotated[str, Meta(max_length=100)] | None = None
    after: Moment | None = None
    count: Annotated[int, Meta(ge=1, le=500)] = 10


async def explain(call: Call[NoQuery, TriggerBody]) -> Answer:
    body = call.body
    tz = body.tz or call.app.settings.tz
    trigger, zone = read_trigger(body.text, tz)
    if body.tz is None and (named := own_zone(trigger)) is not None:
        zone = ZoneInfo(named)  # a time of a place is shown by the clock of that place
    now = datetime.fromtimestamp(
        await call.client.now() if body.after is None else unix(body.after, "after", "/after"), UTC
    )
    # in a thread, because a search through excluded fires may take a while
    return Answer(await asyncio.to_thread(trigger_view, trigger, zone, tz, now, body.count))


ROUTES: list[Route[Any, Any]] = [
    post(f"{API}/triggers/explain", "Explain a trigger", Right.READ, explain, TriggerBody, {200: TriggerView})
]
