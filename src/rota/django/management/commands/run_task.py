"""`manage.py run_task NAME [argument=value …]`: call a task here and now, or let a worker do it."""

from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from rota.django.command_line import run


class Command(BaseCommand):
    help = "Call a task in this process and print its result. With --enqueue, a worker calls it, with its policies."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", help="The name of the task: see list_tasks.")
        parser.add_argument("values", nargs="*", metavar="argument=value", help="What the task takes.")
        parser.add_argument("--enqueue", action="store_true", help="Make a run for a worker, and do not wait.")

    def handle(self, *args: Any, name: str, values: list[str], **options: Any) -> None:
        run("submit" if options["enqueue"] else "call", name, *values)
