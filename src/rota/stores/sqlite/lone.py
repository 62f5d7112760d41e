"""A lone plain put in SQLite: what `ledger.admit` makes of a run without guards, by its statements alone. The book, its
gathered changes and the ledger took as long as SQLite itself."""

from rota.domain.decision import Reason
from rota.domain.overrides import OVERRIDE_ROW
from rota.domain.run import NewRun
from rota.store import What
from rota.stores.sqlite import statements as sql
from rota.stores.sqlite.gates import Specs
from rota.stores.sqlite.rows import ADD, added_row
from rota.stores.sqlite.threads import Transaction

LONGEST = 16 * 1024
"""The most bytes in the body of a run that the event loop itself writes."""


def is_brief(run: NewRun) -> bool:
    """Return whether a put of this run alone takes a few look-ups and writes a few pages, whatever the store holds."""
    return run.guards.max_pending is None and len(run.body) <= LONGEST


def is_plain(run: NewRun) -> bool:
    """Return whether nothing but the spec of its task can keep this run from being accepted, due or not."""
    guards = run.guards
    known = run.unique_key is not None or run.fingerprint is not None
    bound = run.needs or run.callbacks or guards.behind or guards.join == "replace"
    return not (known or bound or guards.cooldowns or guards.max_pending is not None)


def put_plain(tx: Transaction, specs: Specs, run: NewRun) -> bool:
    """Put `run`, which is plain. Return False, and change nothing, if it has to go the usual way.

    That is so while somebody reads events, if the task is disabled or overridden or has a limit per key, and if the
    specs were not read since they changed.
    """
    if tx.now < tx.record_until or specs.version != tx.specs or OVERRIDE_ROW + run.task in specs.known:
        return False
    spec = specs.known.get(run.task)
    if spec is not None and not (spec.enabled and (spec.limit is None or spec.limit.per_key is None)):
        return False
    execute = tx.connection.execute
    execute(ADD.one, added_row(run, tx.now, run.due_at(tx.now), False))
    execute(sql.COUNT_TOTAL, (What.DECIDED.value, run.task, Reason.ACCEPTED.value, 1, None))
    return True
