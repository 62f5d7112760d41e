"""The tasks of the shop."""

import asyncio
import os
import signal
import sys
import time
from datetime import datetime
from pathlib import Path
from typing import Any

from django.db import connection

from rota import Limit, Rate, Retry
from rota.django import task
from tests.django.shop.models import Order


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


@task(takes_context=True, max_attempts=3, backoff=lambda error, result: 0.0)
def third_time(context: Any, path: str) -> list[Any]:
    with Path(path).open("a") as file:
        file.write(f"{context.attempt}\n")
    if context.attempt < 3:
        raise KeyError(context.attempt)
    return [context.attempt, context.task_result.id]


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
def write_slowly(path: str, line: str, seconds: float) -> None:
    write.func(path, f"{line} begins")
    time.sleep(seconds)
    write.func(path, f"{line} ends")


@task(lost="retry")
def kill_the_worker_once(path: str) -> str:
    if not Path(path).exists():
        Path(path).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return "second"


@task(executor="process")
def in_a_child(name: str) -> list[Any]:
    return [os.getpid(), Order.objects.filter(name=name).count(), connection.vendor]


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
