"""A program that runs handlers of its own main module in children, until it is killed."""

import asyncio
import os
import threading

from rota.domain.arguments import Signature
from rota.domain.run import Run
from rota.engine.context import Context
from rota.engine.executors.process import ChildRaised, ProcessExecutor
from rota.engine.handler import Handler
from tests.engine.process_tasks import hold_the_gil
from tests.lines import print_line


class Mine(Exception):
    pass


def stumble() -> None:
    raise Mine


def wait_for_ever(ctx: Context) -> None:
    print_line(f"child {os.getpid()}")
    threading.Event().wait()


async def main() -> None:
    processes = ProcessExecutor()
    context = Context(Run(id="r"))
    try:
        handler = Handler(name="stumble", fn=stumble, signature=Signature(stumble), executor="process")
        await processes.call(handler, context, b"{}", None)
    except ChildRaised as error:
        print("raised", error.failure.type, *error.kind_names, flush=True)
    async with asyncio.TaskGroup() as group:
        for fn in (wait_for_ever, hold_the_gil):
            handler = Handler(
                name=fn.__name__, fn=fn, signature=Signature(fn, 1), executor="process", takes_context=True
            )
            group.create_task(processes.call(handler, context, b"{}", None))


if __name__ == "__main__":
    asyncio.run(main())
