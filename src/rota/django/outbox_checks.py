"""What `rota doctor` says about the outbox of a project."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from django.db import DatabaseError, connections

from rota.django.conf import conf
from rota.django.outbox import OLD, older, outbox_alias
from rota.domain.text import plural

if TYPE_CHECKING:
    from rota.doctor.checks import Check

LATE = 60.0
"""Seconds after which a row says that nobody sweeps."""
NAMED = 5


def of_outbox() -> "Iterator[Check]":
    """Yield one check: whether runs wait that a transaction of the project has enqueued, and how long."""
    from rota.doctor.checks import Check, Verdict, good

    alias = outbox_alias()
    try:
        late, old = older(alias, LATE), sorted(older(alias, OLD))
    except DatabaseError as error:
        if conf().transactions in ("auto", "outbox"):
            yield Check("outbox", Verdict.WARN, f"the table cannot be read: {error}", "run manage.py migrate")
        return
    finally:
        if not connections[alias].in_atomic_block:
            connections[alias].close()  # this thread may be one of a service, which nobody tidies
    if old:
        named = ", ".join(old[:NAMED]) + f" and {len(old) - NAMED:,} more" * (len(old) > NAMED)
        detail = f"{plural(len(old), 'run')} for more than 12 hours: {named}"
        advice = "a worker looks for each of them in the store and puts what is not there: start one (rota_worker)"
        yield Check("outbox", Verdict.WARN, detail, advice)
    elif late:
        advice = "start a worker of this project (rota_worker); if one runs, its log says why it does not sweep"
        yield Check("outbox", Verdict.WARN, f"{plural(len(late), 'run')} for more than a minute", advice)
    else:
        yield good("outbox", "no run waits there for long")
