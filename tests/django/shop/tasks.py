"""The tasks of the shop."""

import asyncio
import os
import sys
import threading
from datetime import datetime
from pathlib import Path
from typing import Any

from asgiref.sync import sync_to_async

from rota import Limit, Rate, Retry
from rota.django import task
from tests.django.shop.models import Order
from tests.lines import print_line

meeting = threading.Barrier(10)
"""Where calls wait for each other: those that cannot be there at the same time never pass."""


@task
def add(a: int, b: int = 2) -> int:
    return a + b


@task
def anything(*args: Any, **kwargs: Any) -> list[Any]:
    return [list(args), kwargs]


@task
async def add_async(a: int, b: int) -> int:
    await asyncio.sleep(0)
    return a + b


@task(priority=5, queue_name="mail")
def mail(to: datetime) -> str:
    """Send a mail."""
    return type(to).__name__


@task
def fail(message: str) -> None:
    raise ValueError(message)


class OutOfPaper(Exception):
    """An exception of the project's own."""


@task
def print_receipt() -> None:
    raise OutOfPaper("tray 2")


@task(takes_context=True, max_attempts=3, backoff=lambda error, result: 0.0)
def third_time(context: Any, path: str) -> list[Any]:
    with Path(path).open("a") as file:
        file.write(f"{context.attempt}\n")
    if context.attempt < 3:
        raise KeyError(context.attempt)
    return [context.attempt, context.task_result.id]


@task(max_attempts=23, backoff=lambda error, result: 0.0)
def fails_often() -> None:
    """Fail more often than a store keeps attempts."""
    raise LookupError


@task
def unsuitable() -> object:
    return object()


@task
def leave() -> None:
    sys.exit(3)


@task(takes_context=True)
async def who(context: Any) -> str:
    return str(context.task_result.id)


@task
def see(name: str) -> int:
    """Mark an order as seen, and say how many connections this thread has had to open."""
    order, _ = Order.objects.get_or_create(name=name)
    order.seen += 1
    order.save()
    return order.seen


@task
async def see_async(name: str) -> int:
    order, _ = await Order.objects.aget_or_create(name=name)
    return order.seen


@task
def write(path: str, line: str) -> None:
    with Path(path).open("a") as file:
        file.write(f"{line}\n")


@task
def hold(name: str, go: str) -> None:
    """Do not end before the file `go` is there when the call begins."""
    if not Path(go).exists():
        print_line(f"{name} holds")
        threading.Event().wait(300)


@task
def finish(go: str) -> str:
    """End when the file `go` is there."""
    print_line("works")
    while not Path(go).exists():
        threading.Event().wait(0.02)
    return "finished"


@task(executor="process")
def in_a_child(name: str) -> dict[str, Any]:
    """Say which process this is, which sockets it had before its first query, and what it sees."""
    files = [f"/proc/self/fd/{each}" for each in os.listdir("/proc/self/fd")]
    sockets = [os.readlink(each) for each in files if os.path.islink(each)]
    return {"pid": os.getpid(), "sockets": sockets, "orders": Order.objects.filter(name=name).count()}


@task
def see_together(name: str) -> bool:
    """Query, and return when all seats are here: each has its own thread then."""
    Order.objects.filter(name=name).exists()
    meeting.wait(20)
    return Order.objects.filter(name=name).exists()


@task
async def see_together_async(name: str) -> int:
    """Query in the thread of this call, and return when as many threads are here as `meeting` waits for."""
    count = await Order.objects.filter(name=name).acount()
    await sync_to_async(meeting.wait)(20)
    return count


@task(
    retry=Retry(5),
    timeout=30,
    unique="active",
    key="{user}",
    limit=Limit(2),
    rate=Rate(100, 1),
    lost="fail",
    schedule="every 1h",
    aliases=["shop.old_report"],
)
def report(user: str = "all") -> str:
    return user


NOT_A_TASK = 5
