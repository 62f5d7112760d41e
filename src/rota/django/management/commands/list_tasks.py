"""`manage.py list_tasks`: what this project can do."""

from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from rota.django.command_line import run


class Command(BaseCommand):
    help = "List the tasks of this project, their options, and how many of their runs wait."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--json", action="store_true", help="Answer in JSON.")

    def handle(self, *args: Any, **options: Any) -> None:
        run("tasks", *(["--json"] if options["json"] else []))
