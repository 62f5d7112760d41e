"""Events: what happens in the store, as a stream that a browser reads with EventSource."""

from typing import Annotated, Any

from msgspec import Meta, Struct

from rota.store import event_number
from rota.web.rights import Right
from rota.web.routes import API, Answer, Call, EventText, Route, Text
from rota.web.streams import Streams
from rota.web.topics import CURRENT, RECORDED, Selection

LAST = "Last-Event-ID"
_ONE = "|".join((*RECORDED, *CURRENT))
Topics = Annotated[str, Meta(pattern=f"^({_ONE})(,({_ONE}))*$", max_length=200)]


class StreamQuery(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`topics`: names with commas; without them, all that the store records. `task`, `run`, `flow`: only what is about
    it. `wait`: the stream ends after this many seconds; without it, it goes on."""

    topics: Topics | None = None
    task: Text | None = None
    run: Text | None = None
    flow: Text | None = None
    wait: Annotated[float, Meta(ge=0, le=86_400)] | None = None


async def events(call: Call[StreamQuery, None]) -> Answer:
    query, streams = call.query, call.request.app.state.streams
    assert isinstance(streams, Streams)
    after = call.request.headers.get(LAST) or None
    if after is not None:
        event_number(after)
    topics = frozenset(RECORDED if query.topics is None else query.topics.split(","))
    selection = Selection(topics, query.task, query.run, query.flow, call.principal.tasks)
    stream = await streams.join(selection, call.principal, call.request.state.judge)
    seconds = 0.0 if call.request.method == "HEAD" else query.wait
    return Answer(EventText(streams.messages(stream, after, seconds), lambda: streams.leave(stream)))


ROUTES: list[Route[Any, Any]] = [
    Route(
        "GET",
        f"{API}/events",
        "What happens in the store, as server-sent events",
        Right.READ,
        events,
        StreamQuery,
        None,
        {200: EventText},
        conditions=(LAST,),
    ),
]
