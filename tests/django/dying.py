"""Processes that enqueue until they are killed: `python -m tests.django.dying PATH DEATHS EACH`.

One process sets the project up, imports all that an enqueue imports, makes the app, and forks the others, as gunicorn
does with --preload, so that a death costs no start. It writes the number of each commit that it knows of, and after
`maybe` the number of one that it cannot know of: a process that is killed from outside may have committed once more.
"""

import gc
import importlib
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from random import Random
from typing import Any

import django

APART = 1_000_000
"""Between the first numbers of two processes."""
SPREAD = 1.5
"""A kill from outside falls anywhere in so many lives of a process that dies by itself, on any machine."""
KINDS = ("before the hand-over", "before the put", "before the delete", "from outside")


class Undone(Exception):
    """Rolls a transaction back."""


def die(*_: object) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def enqueue(path: str, first: int, count: int, kind: str, written: int) -> None:
    """Commit one task after another, each after a transaction that is rolled back; then die by `kind`.

    In the database of the store a run is put in the transaction, and there is nothing to hand over: the process dies
    after its last commit.
    """
    from django.db import transaction
    from django.db.models import QuerySet

    from rota.django import outbox
    from tests.django.shop.tasks import write

    deadly: dict[str, tuple[Any, str]] = {
        "before the hand-over": (outbox, "hand_over"),
        "before the put": (outbox, "_put"),
        "before the delete": (QuerySet, "delete"),
    }
    number = first
    os.write(written, b"begins\n")
    while kind == "from outside" or number < first + count:
        with suppress(Undone), transaction.atomic():
            write.enqueue(path, f"undone {number}")
            raise Undone
        if number == first + count - 1 and kind in deadly:
            setattr(*deadly[kind], die)
        with transaction.atomic():
            write.enqueue(path, str(number))
        os.write(written, f"{number}\n".encode())
        number += 1
    die()


def forked(path: str, first: int, count: int, kind: str, lives: list[float]) -> Iterator[str]:
    """Let a process enqueue and die; yield what is known of its commits. `lives`: how long others lived."""
    read, written = os.pipe()
    child = os.fork()
    if not child:
        try:
            os.close(read)
            enqueue(path, first, count, kind, written)
        finally:
            os._exit(1)
    os.close(written)
    known, last = -1, 0.0  # it begins
    with os.fdopen(read) as lines:
        for _ in lines:
            known, last = known + 1, time.monotonic()
            if known == count - 1 and kind == "from outside":
                threading.Event().wait(Random(first).uniform(0, SPREAD * lives[-1]))
                os.kill(child, signal.SIGKILL)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert code == -signal.SIGKILL, f"a process ended by itself: {code}"
    if kind != "from outside":
        known = count
        lives.append(time.monotonic() - last)
    yield from map(str, range(first, first + known))
    if kind == "from outside":
        yield f"maybe {first + known}"


def warm(path: str) -> None:
    """Import what a first process imported for an enqueue and its hand-over, and make the app and a run. This process
    opens nothing itself: a child would inherit it."""
    read, written = os.pipe()
    child = os.fork()
    if not child:
        try:
            from django.db import transaction

            from tests.django.shop.tasks import write

            with transaction.atomic():
                write.enqueue(path, "warm")
            os.write(written, " ".join(sys.modules).encode())
        finally:
            os._exit(0)
    os.close(written)
    with os.fdopen(read) as names:
        for name in names.read().split():
            importlib.import_module(name)
    os.waitpid(child, 0)

    from rota.django.enqueueing import Enqueued
    from tests.django.shop.tasks import write

    Enqueued(write, (path, "never enqueued"), {}).run()
    gc.collect()
    gc.freeze()  # a collection in a child would copy every page


def main(path: str, deaths: int, each: int) -> None:
    django.setup()
    from django.core.management import call_command
    from django.db import connections

    call_command("migrate", verbosity=0)
    connections.close_all()
    warm(path)
    print("warm", flush=True)
    lives: list[float] = []
    for death in range(deaths):
        for line in forked(path, death * APART, each, KINDS[death % len(KINDS)], lives):
            print(line, flush=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
