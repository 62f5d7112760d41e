"""Transactions: which way a run goes that is enqueued while a transaction of the project is open.

`auto`: in the same PostgreSQL database, the run is put in the transaction, by one statement; else it goes through the
outbox. A run with unique keys always goes through the outbox: an open transaction must hold no lock of rota's.
"""

import logging
from collections.abc import Callable
from typing import Any, cast
from urllib.parse import parse_qsl, unquote, urlsplit

from django.db import connections, transaction

from rota.app.core import core_of
from rota.client.handle import accept
from rota.django import databases, outbox
from rota.django.conf import conf, in_tests
from rota.django.enqueueing import Enqueued, put_now
from rota.django.project import app
from rota.django.tasks_api import AnyResult, AnyTask
from rota.domain.run import NewRun
from rota.errors import InvalidOptions
from rota.store import SubmitsWithin

log = logging.getLogger("rota.django")

PENDING = "_rota_pending"
"""The attribute of a connection that holds the ids of the runs which its transaction has written into the outbox."""
_same: dict[tuple[SubmitsWithin, str, str], bool] = {}
"""Whether a store is in the database of an alias, which may get another name in tests."""


def alias_of_transaction() -> str | None:
    """Return the alias of the database on which a transaction is open in this thread; None if a run is put at once.

    In tests every transaction is rolled back in the end, so `auto` puts at once there.
    """
    how = conf().transactions
    if how == "off" or (how == "auto" and in_tests()):
        return None
    alias = outbox.outbox_alias()
    return alias if connections[alias].in_atomic_block else None


def enqueue_within(made: Enqueued, alias: str) -> None:
    """Enqueue in the transaction that is open on the database `alias`."""
    if conf().transactions == "on_commit":
        made.call()  # wrong arguments raise here
        transaction.on_commit(lambda: put_now(made), using=alias)
        return
    run = made.run(own_id=True)
    submits = _same_database(alias)
    if conf().transactions == "auto" and submits is not None and _holds_no_lock(run):
        made.decision = accept(submits.put_within_sync(connections[alias], made.run()))
        return
    client = core_of(app()).client
    refusal = client.refusal(run)
    if refusal is not None:
        accept(refusal)
    outbox.write(client.prepared(run), alias)
    _hand_over_later(run.id, alias)


def enqueue_on_commit(task: AnyTask, *args: Any, using: str | None = None, robust: bool = False, **kwargs: Any) -> None:
    """Enqueue `task` after the transaction on the database `using` has committed; at once if none is open.

    It gives no id, and a process that dies right after the commit loses the call: `task.enqueue` in a transaction does
    neither.
    """
    later = cast("Callable[[], AnyResult]", lambda: task.enqueue(*args, **kwargs))
    transaction.on_commit(later, using=using, robust=robust)


def _holds_no_lock(run: NewRun) -> bool:
    return run.unique_key is None and not run.needs and run.guards.max_pending is None and not run.guards.reads_marks


def _hand_over_later(id: str, alias: str) -> None:
    """Hand the rows of this transaction over after its commit, all at once. The rows decide: a rolled-back savepoint
    leaves an id in the list and no row."""
    connection = connections[alias]
    pending: list[str] = connection.__dict__.setdefault(PENDING, [])
    if not any(getattr(each[1], PENDING, False) for each in reversed(connection.run_on_commit)):
        pending.clear()  # of transactions that were rolled back
    pending.append(id)

    def hand_over() -> None:
        ids, pending[:] = list(pending), []
        outbox.hand_over(ids, alias)

    setattr(hand_over, PENDING, True)
    transaction.on_commit(hand_over, using=alias, robust=True)


def _same_database(alias: str) -> SubmitsWithin | None:
    """Return how to put within a transaction of the database, if the store is in the same one."""
    connection, backend = connections[alias], app().backend
    submits = backend.submits_within
    if submits is None or connection.vendor != "postgresql":
        return None
    pair = submits, alias, str(connection.settings_dict["NAME"])
    if pair not in _same:
        same = _is_same(getattr(backend, "address", None), alias)
        if same:  # the first submit of a process creates the schema, in a transaction of its own
            app().portal.call(core_of(app()).client.store)
        _same[pair] = same
    return submits if _same[pair] else None


def _is_same(address: Any, alias: str) -> bool:
    try:
        return place(getattr(address, "dsn", "")) == place(databases.dsn_of(f"{databases.SCHEME}://{alias}"))
    except InvalidOptions:  # Django connects in a way of its own, so nobody knows whether the places are one
        return False


def place(dsn: str) -> tuple[str, str, str, str]:
    """Return host, port, database and service of a URL."""
    parts = urlsplit(dsn)
    given = dict(parse_qsl(parts.query))
    host = parts.hostname or given.get("host", "")
    port = str(parts.port or given.get("port", "5432"))
    return host, port, unquote(parts.path.lstrip("/")), given.get("service", "")
