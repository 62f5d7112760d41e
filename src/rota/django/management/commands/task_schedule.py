"""`manage.py task_schedule`: what fires when."""

from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from rota.django.command_line import run


class Command(BaseCommand):
    help = "Show when the schedules of this project fire, in its TIME_ZONE; nothing has to run for that."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--days", type=int, default=7, help="So many days from now.")
        parser.add_argument("--task", help="Only this task.")
        parser.add_argument("--json", action="store_true", help="Answer in JSON.")

    def handle(self, *args: Any, **options: Any) -> None:
        only = ["--task", options["task"]] if options["task"] else []
        run("preview", "--days", str(options["days"]), *only, *(["--json"] if options["json"] else []))
