"""`manage.py run_task NAME [argument=value …]`: call a task here and now, or let a worker do it."""

from contextlib import ExitStack
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from rota.app.core import core_of
from rota.app.leases import Leases
from rota.client.client import Client
from rota.django.command_line import run
from rota.django.project import app
from rota.domain.run import State
from rota.errors import StoreError
from rota.store import RunQuery
from rota.task import definition_of

PATIENCE = 2.0
"""Seconds to wait for another `run_task` of the same task."""
LEASE = 60.0
"""Seconds after which the call of a command that was killed no longer counts as running."""


class Command(BaseCommand):
    help = (
        "Call a task in this process and print its result; the exit code is 1 if it fails. A task that is running, "
        "here or in a worker, is not called a second time, as its overlap= says. With --enqueue, a worker calls it."
    )

    def create_parser(self, prog_name: str, subcommand: str, **kwargs: Any) -> CommandParser:
        """Take options between the values too: `run_task NAME --enqueue day=7`."""
        parser = super().create_parser(prog_name, subcommand, **kwargs)
        setattr(parser, "parse_args", parser.parse_intermixed_args)  # noqa: B010
        return parser

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", help="The name of the task: see list_tasks.")
        parser.add_argument("values", nargs="*", metavar="argument=value", help="What the task takes.")
        parser.add_argument("--enqueue", action="store_true", help="Make a run for a worker, and do not wait.")
        parser.add_argument("--force", action="store_true", help="Call the task, whatever else is running.")

    def handle(self, *args: Any, name: str, values: list[str], **options: Any) -> None:
        if options["enqueue"]:
            run("submit", name, *values)
            return
        with ExitStack() as alone:
            if not options["force"] and _is_alone(name):
                try:
                    running = _running(name, alone)
                except StoreError as error:
                    raise CommandError(f"{error}; --force calls the task without asking the store") from None
                if running is not None:
                    self.stderr.write(f"{name} was not called: {running}; --force calls it all the same")
                    return
            run("call", name, *values)


def _is_alone(name: str) -> bool:
    """Return whether two calls of the task may not overlap: what its schedules do, too."""
    task = core_of(app()).registry.find(name)  # the command names one that is missing
    return task is not None and definition_of(task).timed.overlap != "allow"


def _running(name: str, alone: ExitStack) -> str | None:
    """Return what else is running; None: nothing, and no other `run_task` of the task begins before `alone` ends."""
    task = core_of(app()).registry.names()[name].name
    client = Client(app().backend)  # of its own: the end of the call closes that of the app
    alone.callback(lambda: client.portal.close(client.close))
    try:
        alone.enter_context(Leases(lambda: client).lease_sync(f"run_task:{task}", LEASE, PATIENCE))
    except TimeoutError:
        return "another run_task calls it"
    page = client.portal.call(lambda: client.runs(RunQuery(task=task, state=State.RUNNING, limit=1)))
    return f"the run {page.runs[0].id} is running" if page.runs else None
