"""Processes that enqueue until they are killed: `python -m tests.django.dying PATH DEATHS EACH`.

One process sets the project up and forks the others, so that a death costs no start. It writes the number of each
commit that it knows of; a process that is killed from outside may have made one more.
"""

import os
import signal
import sys
import threading
from contextlib import suppress
from random import Random
from typing import Any

import django

APART = 1_000_000
"""Between the first numbers of two processes."""
SPREAD = 0.02
"""Seconds in which a kill from outside falls anywhere."""
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


def forked(path: str, first: int, count: int, kind: str) -> list[int]:
    """Let a process enqueue and die; return the numbers that it has committed for sure."""
    read, written = os.pipe()
    child = os.fork()
    if not child:
        try:
            os.close(read)
            enqueue(path, first, count, kind, written)
        finally:
            os._exit(1)
    os.close(written)
    known: list[int] = []
    with os.fdopen(read) as lines:
        for line in lines:
            known.append(int(line))
            if len(known) == count and kind == "from outside":
                threading.Event().wait(Random(first).uniform(0, SPREAD))
                os.kill(child, signal.SIGKILL)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert code == -signal.SIGKILL, f"a process ended by itself: {code}"
    return known if kind == "from outside" else list(range(first, first + count))


def main(path: str, deaths: int, each: int) -> None:
    django.setup()
    from django.core.management import call_command
    from django.db import connections

    call_command("migrate", verbosity=0)
    connections.close_all()
    for death in range(deaths):
        for number in forked(path, death * APART, each, KINDS[death % len(KINDS)]):
            print(number)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
