"""The events of a SQLite store: a table of numbered rows, and the numbers in the row of the clock."""

import msgspec

from rota.domain.decision import Reason
from rota.domain.run import NewRun, State
from rota.store import EVENT_MEMORY, EVENTS_KEPT, SUBSCRIBED, EventPage, EventQuery, event_number
from rota.stores.bounds import LEDGER
from rota.stores.events import EventRow, Known, first_number
from rota.stores.sqlite.rows import to_json
from rota.stores.sqlite.threads import Transaction

ADD = """
INSERT INTO events (number, event, grp)
SELECT ? + e.key, e.value, CASE e.value ->> 2 WHEN 'runs' THEN (SELECT grp FROM runs WHERE id = e.value ->> 3) END
FROM json_each(?) AS e
"""
# One statement: a sweep between two could delete events that the first one has promised.
READ = """
SELECT json_array(gone, event, (
    SELECT json_group_array(json_array(number, json(event), grp)) FROM (
        SELECT number, event, grp FROM events
        WHERE number > (SELECT iif(:after BETWEEN gone AND event, :after, iif(:after IS NULL, event, gone)) FROM clock)
        ORDER BY number LIMIT :limit)))
FROM clock
"""
RECORD = """
UPDATE clock SET record_until = :until, event = iif(:revived, iif(event, event + 1, :first), event),
    gone = iif(:revived, iif(event, event + 1, :first), gone)
"""
OLD = """
SELECT max(number) FROM (SELECT number, event FROM events ORDER BY number LIMIT :most)
WHERE event ->> 0 <= :before OR number <= (SELECT event - :kept FROM clock) OR number <= (SELECT gone FROM clock)
"""

_read = msgspec.json.Decoder(tuple[int, int, list[tuple[int, EventRow, str | None]]])


def queued(new: NewRun, now: float) -> EventRow:
    """Return the event that `new` is queued, if the store does not know its id."""
    return EventRow(now, "queued", "runs", new.id, new.task, new.key, State.QUEUED.value, Reason.ACCEPTED.value)


def add(tx: Transaction, rows: list[EventRow]) -> None:
    last = tx.one("UPDATE clock SET event = event + ? RETURNING event", len(rows))
    tx.execute(ADD, last - len(rows) + 1, to_json(rows))


def needs_renewal(tx: Transaction) -> bool:
    return tx.record_until - tx.now < SUBSCRIBED / 2


def renew(tx: Transaction) -> None:
    """Record events for SUBSCRIBED seconds. If none were recorded until now, no cursor from before is of use."""
    if needs_renewal(tx):
        tx.record_until, revived = tx.now + SUBSCRIBED, tx.record_until <= tx.now
        values = {"until": tx.record_until, "revived": revived, "first": first_number(tx.now)}
        tx.connection.execute(RECORD, values)


def read(tx: Transaction, query: EventQuery) -> EventPage:
    after = None if query.after is None else event_number(query.after)[0]
    values = {"after": after, "limit": query.limit}
    gone, last, found = _read.decode(tx.connection.execute(READ, values).fetchone()[0])
    rows = [(number, msgspec.structs.replace(row, group=group)) for number, row, group in found]
    return Known(gone, last).page(tx.now, query, rows, rows[-1][0] if rows else last)


def forget(tx: Transaction) -> bool:
    """Delete old events, LEDGER.forgotten at most. Return whether more may be left."""
    cut = {"most": LEDGER.forgotten, "before": tx.now - EVENT_MEMORY, "kept": EVENTS_KEPT}
    last = tx.connection.execute(OLD, cut).fetchone()[0]
    if last is None:
        return False
    tx.execute("UPDATE clock SET gone = max(gone, ?)", last)
    return tx.execute("DELETE FROM events WHERE number <= ?", last) == LEDGER.forgotten
