"""Preview: what will fire, which schedules meet, and how many seats are busy."""

import asyncio
from typing import Annotated, Any
from zoneinfo import ZoneInfo

from msgspec import Meta, Struct

from rota.app.core import core_of
from rota.domain.forecast import DAY, forecast
from rota.domain.triggers.zones import zone_name
from rota.views.forecast import forecast_view
from rota.views.inventory import inventory_of
from rota.web.problems import Problem
from rota.web.rights import Right
from rota.web.routes import API, Answer, Call, Route, Text, get

LONGEST = 366


class PreviewQuery(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`tz`: the zone of the days and hours; the app's, if none is named."""

    days: Annotated[int, Meta(ge=1, le=LONGEST)] = 7
    tz: Annotated[str, Meta(max_length=100)] | None = None
    task: Text | None = None


async def preview(call: Call[PreviewQuery, None]) -> Answer:
    """Nothing is called and nothing is changed."""
    query, settings, registry = call.query, call.app.settings, core_of(call.app).registry
    try:
        tz = zone_name(query.tz) or settings.tz
    except ValueError as error:
        raise Problem(422, str(error)) from None
    inventory = await inventory_of(
        call.client, tz, settings.name, registry.declared(), registry.specs(), call.app.flows.values()
    )
    chosen = [
        each
        for each in inventory.started().values()
        if query.task in (None, each.task) and call.principal.may(Right.READ, each.task)
    ]
    firing = [each for each in chosen if not inventory.is_disabled(each)]
    end = inventory.now + query.days * DAY
    # in a thread, because thousands of fires take a while
    found = await asyncio.to_thread(
        forecast, firing, inventory.durations, inventory.now, end, ZoneInfo(tz), inventory.flows
    )
    return Answer(forecast_view(inventory, found, chosen))


LIST = {"type": "array"}
NAMES = {"type": "array", "items": {"type": "string"}}
PREVIEW: dict[str, Any] = {
    "type": "object",
    "properties": {
        "from": {"type": "string"},
        "to": {"type": "string"},
        "until": {"type": "string"},
        "zone": {"type": "string"},
        "seats": {"type": "integer"},
        "durations": {"type": "object"},
        **dict.fromkeys(("fires", "flows", "deadlines", "frequent", "collisions", "hours"), LIST),
        **dict.fromkeys(("paused", "disabled", "unreadable"), NAMES),
    },
    "required": ["from", "to", "until", "zone", "fires", "collisions", "hours"],
}
ROUTES: list[Route[Any, Any]] = [
    get(f"{API}/preview", "What will fire, and where schedules meet", Right.READ, preview, PREVIEW, PreviewQuery),
]
