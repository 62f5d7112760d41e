"""Topics: what a stream of events is about, and the messages of `text/event-stream`."""

from collections.abc import Collection, Iterable, Iterator, Mapping

import msgspec
from msgspec import Raw, Struct

from rota.client.operations import OPERATION
from rota.domain.event import Event
from rota.views.events import event_view

RECORDED = ("runs", "tasks", "schedules", "flows", "operations", "decisions")
"""Topics of what the store records: whoever goes on from an id misses none of it."""
CURRENT = ("depths", "stats", "workers")
"""Topics that are sent whole: after the first message, and when they change."""
ALL = (*RECORDED, *CURRENT)
ROWS = 200
"""The most rows of one message. More changes at once are a resync."""


class Selection(Struct, frozen=True):
    """What one caller hears of. Callers with the same selection share their messages."""

    topics: frozenset[str]
    task: str | None = None
    run: str | None = None
    flow: str | None = None
    tasks: tuple[str, ...] = ()
    """The tasks that the caller's credential is limited to; empty: all."""

    def wants(self, topic: str, event: Event) -> bool:
        return (
            topic in self.topics
            and self.wants_task(event.task)
            and self.run in (None, event.id)
            and self.flow in (None, flow_of(event))
        )

    def wants_task(self, task: str) -> bool:
        return self.task in (None, task) and (not self.tasks or task in self.tasks)

    def ordered(self, topics: Collection[str]) -> list[str]:
        """Return those of `topics` that the caller hears of, in the order of the list of all topics."""
        return [topic for topic in ALL if topic in topics and topic in self.topics]


def flow_of(event: Event) -> str | None:
    """Return the flow, chain or plan of the event's run."""
    return None if event.group is None else event.group.rpartition("@")[0]


def places(event: Event, flows: Collection[str]) -> Iterator[tuple[str, object, Raw]]:
    """Return in which topics an event is shown, under which key, and its row. A later row of a key replaces it."""
    shown = event_view(event)
    if event.of == "runs":
        row = Raw(msgspec.json.encode(shown))
        if event.name == "refused":
            yield "decisions", (event.task, event.key, event.reason), row
        else:
            yield ("operations" if event.task == OPERATION else "runs"), event.id, row
            if (flow := flow_of(event)) in flows:
                assert event.group is not None
                told = shown | {"flow": flow, "period": event.group.rpartition("@")[2]}
                yield "flows", event.group, Raw(msgspec.json.encode(told))
    elif event.of:
        yield event.of, event.id, Raw(msgspec.json.encode(shown))


class Gathered:
    """Rows that wait to be sent: the last one of each key, and the topics of which too much has happened."""

    def __init__(self, selection: Selection) -> None:
        self.selection = selection
        self._rows: dict[str, dict[object, Raw]] = {}
        self.lost: dict[str, str] = {}
        """Topics that the caller has to read again, and why."""

    def __bool__(self) -> bool:
        return bool(self._rows or self.lost)

    def add(self, topic: str, key: object, row: Raw) -> None:
        if topic in self.lost:
            return
        rows = self._rows.setdefault(topic, {})
        rows.pop(key, None)  # the order is that of the last change
        rows[key] = row
        if len(rows) > ROWS:
            self.lose("many", [topic])

    def lose(self, reason: str, topics: Collection[str] = RECORDED) -> None:
        for topic in self.selection.ordered(topics):
            self._rows.pop(topic, None)
            self.lost.setdefault(topic, reason)

    def forget(self) -> None:
        self._rows, self.lost = {}, {}

    def messages(self, cursor: str | None) -> bytes:
        """Return all that was gathered, and forget it. Only the last message has the id: a connection that breaks in
        between goes on before the first."""
        sent: list[tuple[str, object]] = [(topic, {"items": list(rows.values())}) for topic, rows in self._rows.items()]
        sent += resyncs(self.lost)
        self.forget()
        last = len(sent) - 1
        return b"".join(
            message(name, data, cursor if index == last else None) for index, (name, data) in enumerate(sent)
        )


def resyncs(lost: Mapping[str, str]) -> Iterable[tuple[str, object]]:
    """Return a message for each reason why topics have to be read again."""
    for reason in dict.fromkeys(lost.values()):
        yield "resync", {"topics": [topic for topic, why in lost.items() if why == reason], "reason": reason}


def message(name: str, data: object, cursor: str | None = None) -> bytes:
    """Return one message. JSON has no line breaks, so that nothing in it can begin another message."""
    id = b"" if cursor is None else b"id: %s\n" % cursor.encode()
    return b"%sevent: %s\ndata: %s\n\n" % (id, name.encode(), msgspec.json.encode(data))


def heartbeat(cursor: str | None) -> bytes:
    """Return a message that no caller sees: it keeps the connection open and, with a cursor, moves the last id."""
    return b": still here\n\n" if cursor is None else b": still here\nid: %s\n\n" % cursor.encode()
