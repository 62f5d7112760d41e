"""How long a run of a Django project stays in the outbox after the commit, when the process that enqueued it lives:
`python -m benchmarks --part hand-over [--store sqlite|redis|postgres] [--count 2000]`.

The project has an SQLite database. The time is by the clock, from the end of COMMIT to the answer of the store: on a
busy machine, measure with real-time priority (`chrt -f 10`).
"""

import argparse
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from statistics import quantiles
from typing import Any

from benchmarks.http import Figure, store_url
from benchmarks.report import Grid

WARM_UP = 50
BAR = 50.0
"""Milliseconds of the 99th percentile."""


def hand_over(words: Sequence[str]) -> Grid:
    parser = argparse.ArgumentParser(prog="python -m benchmarks --part hand-over")
    parser.add_argument("--store", choices=["sqlite", "redis", "postgres"], default="sqlite")
    parser.add_argument("--count", type=int, default=2000)
    given = parser.parse_args(words)
    with ExitStack() as running:
        folder = Path(running.enter_context(tempfile.TemporaryDirectory(prefix="rota-bench-")))
        _set_up(folder, store_url(given.store, folder, running))
        took = quantiles(_measure(given.count), n=1000)
    figures = [
        Figure("from COMMIT to the store, p50", took[499], "ms", BAR),
        Figure("from COMMIT to the store, p99", took[989], "ms", BAR),
        Figure("from COMMIT to the store, p99.9", took[998], "ms", BAR),
    ]
    return Grid([f"{given.store}, by the clock", "rota", "bar"], [figure.cells[:3] for figure in figures])


def _set_up(folder: Path, url: str) -> None:
    import django
    from django.conf import settings
    from django.core.management import call_command

    settings.configure(
        BASE_DIR=folder,
        USE_TZ=True,
        INSTALLED_APPS=["django.contrib.contenttypes", "django.contrib.auth", "rota.django"],
        DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": folder / "db.sqlite3"}},
        TASKS={"default": {"BACKEND": "rota.django.tasks.RotaBackend", "QUEUES": []}},
        ROTA={"URL": url},
    )
    django.setup()
    call_command("migrate", verbosity=0)


def nothing(number: int) -> None: ...


def _measure(count: int) -> list[float]:
    """Return the milliseconds of each hand-over."""
    from django.db import transaction

    from rota.django import outbox, task
    from rota.django.project import app

    enqueued, put = task(nothing), outbox._put
    committed, answered = list[float](), list[float]()

    def timed(runs: Any) -> None:
        put(runs)
        answered.append(time.perf_counter())

    setattr(outbox, "_put", timed)  # noqa: B010
    for number in range(-WARM_UP, count):
        with transaction.atomic():
            transaction.on_commit(lambda: committed.append(time.perf_counter()))
            enqueued.enqueue(number)
    app().stop_sync()
    if len(answered) != len(committed):
        raise SystemExit("a hand-over was left to the workers")
    return [1000 * (end - start) for start, end in zip(committed, answered, strict=True)][WARM_UP:]
