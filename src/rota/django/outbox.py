"""The outbox: a run is written into a table of the project in the transaction that enqueues it, and handed over to the
store after the commit, by the process itself or by the sweep of any worker.

A put is idempotent by the id of its run, and the store remembers such an id for a day after the end of the run. So a
row may be handed over any number of times: by a process that dies between the put and the delete, or by two at once.
"""

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, nullcontext
from datetime import timedelta

import msgspec
from django.db import close_old_connections, connections, transaction
from django.db.models.functions import Now

from rota.app.core import core_of
from rota.django.conf import conf, in_tests
from rota.domain.run import NewRun
from rota.errors import StoreError
from rota.store import RunQuery

log = logging.getLogger("rota.django")

PAGE = 1000
"""Rows that are handed over in one step."""
SETTLED = 2.0
"""Seconds after which a sweep takes a row: the process that wrote it has had its chance."""
SWEEP = 2.0
"""Seconds between two sweeps of a worker."""
OLD = 12 * 3600.0
"""Seconds after which a row is not put blindly: the store forgets ids a day after the end of their runs."""
PATIENCE = 2.0
"""Seconds that a process takes after a commit to hand its rows over; then it leaves the others to the workers."""
SWEEP_PATIENCE = 60.0
"""Seconds that a sweep takes for one step: nobody waits for it, and a slow store has to get through it."""
AGAIN = 5.0
"""Seconds after a store did not answer in which commits leave their rows to the workers at once."""

_no_try_before = [0.0]


def write(run: NewRun, alias: str) -> None:
    """Write a run into the outbox, in the transaction that is open on the database `alias`: one INSERT."""
    from rota.django.models import OutboxRun

    row = OutboxRun(id=run.id, run=msgspec.json.encode(run).decode(), created_at=Now())
    row.save(force_insert=True, using=alias)


def read(id: str, alias: str) -> NewRun | None:
    """Return the run of this id, if it is still in the outbox."""
    from rota.django.models import OutboxRun

    row = OutboxRun.objects.using(alias).filter(pk=id).first()
    return None if row is None else msgspec.json.decode(row.run, type=NewRun)


def hand_over(ids: Sequence[str], alias: str) -> None:
    """Hand committed rows over to the store. If the store does not answer, or they are too many for a process that may
    serve a request, rows stay for the workers."""
    from rota.django.models import OutboxRun

    last = time.monotonic() + PATIENCE
    for first in range(0, len(ids), PAGE):
        if not _no_try_before[0] <= time.monotonic() < last:
            return
        rows = list(OutboxRun.objects.using(alias).filter(pk__in=ids[first : first + PAGE]))
        try:
            _put([msgspec.json.decode(row.run, type=NewRun) for row in rows])
        except StoreError as error:
            _no_try_before[0] = time.monotonic() + AGAIN
            left = len(ids) - first
            log.warning("%d enqueued tasks stay in the outbox until the store answers: %s", left, error)
            return
        OutboxRun.objects.using(alias).filter(pk__in=[row.pk for row in rows]).delete()


def sweep(alias: str) -> int:
    """Hand over the rows that nobody has handed over yet; return their number. Other sweeps skip locked rows."""
    from rota.django.models import OutboxRun

    rows = OutboxRun.objects.using(alias).filter(created_at__lt=Now() - timedelta(seconds=SETTLED))
    if not rows.exists():
        return 0
    skips = connections[alias].features.has_select_for_update_skip_locked
    with transaction.atomic(using=alias) if skips else nullcontext():  # SQLite: see docs/decisions/0037
        taken = list((rows.select_for_update(skip_locked=True) if skips else rows).order_by("created_at")[:PAGE])
        old = older(alias, OLD, [row.pk for row in taken])
        there = _known(sorted(old))
        for id in sorted(old - there):
            log.warning("the run %s was in the outbox for more than 12 hours", id)
        _put([msgspec.json.decode(row.run, type=NewRun) for row in taken if row.pk not in there], SWEEP_PATIENCE)
        OutboxRun.objects.using(alias).filter(pk__in=[row.pk for row in taken]).delete()
    return len(taken)


def older(alias: str, seconds: float, ids: Sequence[str] | None = None) -> set[str]:
    """Return the ids of the rows, of all or of those in `ids`, that are older than so many seconds, by the clock of the
    database."""
    from rota.django.models import OutboxRun

    rows = OutboxRun.objects.using(alias).filter(created_at__lt=Now() - timedelta(seconds=seconds))
    return set((rows if ids is None else rows.filter(pk__in=ids)).values_list("pk", flat=True))


def sweep_all() -> None:
    """Sweep until nothing is left, in a thread of a worker."""
    close_old_connections()
    try:
        while sweep(outbox_alias()) == PAGE:
            pass
    except StoreError as error:
        log.warning("the outbox is not swept: %s", error)
    finally:
        close_old_connections()


@asynccontextmanager
async def sweeping() -> AsyncGenerator[None]:
    """Sweep the outbox while a worker of this project runs, in one thread with its own connection."""
    thread = ThreadPoolExecutor(1, "rota-outbox")

    async def sweep_again_and_again() -> None:
        told = False
        while True:
            try:
                if not in_tests():
                    await asyncio.get_running_loop().run_in_executor(thread, sweep_all)
                told = False
            except Exception as error:  # the table is missing, or the database does not answer
                if not told:
                    log.warning("the outbox cannot be swept (is it migrated?): %s", error)
                told = True
            await asyncio.sleep(SWEEP)

    sweeper = asyncio.create_task(sweep_again_and_again(), name="rota sweeps the outbox")
    try:
        yield
    finally:
        sweeper.cancel()
        await asyncio.wait((sweeper,))
        thread.submit(connections.close_all)
        thread.shutdown(wait=False)  # a stop does not wait for a sweep


def outbox_alias() -> str:
    """Return the alias of the database whose transactions count: `ROTA["DATABASE"]`, or what a router says."""
    from django.db import router

    from rota.django.models import OutboxRun

    if conf().database == "default":
        return router.db_for_write(OutboxRun)
    return conf().database


def _put(runs: Sequence[NewRun], patience: float | None = None) -> None:
    """Put the runs, within PATIENCE if `patience` names no other seconds. A refused run is told: nobody waits for its
    answer any more."""
    from rota.django.project import app

    if not runs:
        return
    client, seconds = core_of(app()).client, PATIENCE if patience is None else patience

    async def put() -> None:
        try:
            async with asyncio.timeout(seconds):
                decisions = (await (await client.store()).put(runs)).items
        except TimeoutError:
            raise StoreError(f"it has not answered for {seconds:g} s") from None
        for run, decision in zip(runs, decisions, strict=True):
            if not decision:
                log.warning("%s %s from the outbox was refused: %s", run.task, run.id, decision.reason)

    app().portal.call(put)


def _known(ids: Sequence[str]) -> set[str]:
    """Return those of `ids` that the store has."""
    from rota.django.project import app

    if not ids:
        return set()
    client = core_of(app()).client
    return {run.id for run in app().portal.call(lambda: client.runs(RunQuery(ids=ids))).runs}
