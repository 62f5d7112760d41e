"""`manage.py rota …`: the whole command line of rota, for this project."""

import sys
from argparse import REMAINDER
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from rota.django.command_line import Failed, run


class Command(BaseCommand):
    help = "The command line of rota for this project: manage.py rota runs, manage.py rota why NAME …"
    requires_system_checks = ()

    def run_from_argv(self, argv: list[str]) -> None:
        """Hand all words to rota: its options are its own, also --help."""
        try:
            run(*argv[2:])
        except Failed as failed:
            sys.exit(failed.returncode)

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("words", nargs=REMAINDER, help="A command of rota, and what it takes.")

    def handle(self, *args: Any, words: list[str], **options: Any) -> None:
        run(*words)
