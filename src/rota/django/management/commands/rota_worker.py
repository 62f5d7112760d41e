"""`manage.py rota_worker`: the engine in processes of its own, beside the web server."""

import threading
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import autoreload

from rota.django.command_line import run


class Command(BaseCommand):
    help = "Do the work: claim runs and call tasks until Ctrl-C or SIGTERM."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--queues", help="Only runs of these queues: a,b.")
        parser.add_argument("--tasks", help="Only these tasks: a,b.")
        parser.add_argument("--concurrency", type=int, help="Runs at the same time, in each process.")
        parser.add_argument("--grace", help="Time that running tasks get at the end: seconds, or 30s, 5m.")
        parser.add_argument("--processes", type=int, help="So many processes; one that dies is replaced.")
        parser.add_argument("--burst", action="store_true", help="End when nothing is due any more.")
        parser.add_argument("--reload", action="store_true", help="Start again when the code changes.")

    def handle(self, *args: Any, **options: Any) -> None:
        named = ("queues", "tasks", "concurrency", "grace", "processes")
        given = {name: str(options[name]) for name in named if options.get(name) is not None}
        if not options["reload"]:
            words = [word for name, value in given.items() for word in (f"--{name}", value)]
            run("worker", *words, *(["--burst"] if options["burst"] else []))
            return
        if options["burst"] or {"processes", "tasks", "grace"} & given.keys():
            raise CommandError(
                "--reload starts one worker that does everything, again and again, and gives its runs back at once"
            )
        autoreload.run_with_reloader(_work, given.get("queues"), given.get("concurrency"))


def _work(queues: str | None, concurrency: str | None) -> None:
    """Work on the thread that Django's reloader starts; the engine has its own threads, and ends with the process."""
    from msgspec.structs import replace

    from rota.app import embedded
    from rota.app.core import core_of
    from rota.cli.worker.worker import split
    from rota.django.project import app

    rota = app()
    core = core_of(rota)
    if queues is not None:
        core.tuning = replace(core.tuning, queues=tuple(split([queues])))
    if concurrency is not None:
        core.tuning = replace(core.tuning, concurrency=int(concurrency))
    embedded.limit_grace(rota, 0.0)
    rota.start_sync()
    embedded.give_back_at_once(rota)  # the reloader waits for the end, and so does the developer
    threading.Event().wait()
