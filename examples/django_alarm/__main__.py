"""`python -m examples.django_alarm` shows the tasks of the site and runs one; `… serve [ADDRESS]` serves the site."""

import os
import sys
import tempfile
from datetime import timedelta


def play() -> None:
    import django

    django.setup()
    from django.core.management import call_command
    from django.utils import timezone

    from examples.django_alarm.alarm.models import Event

    call_command("migrate", verbosity=0)
    for days in (1, 40, 400):
        Event.objects.create(at=timezone.now() - timedelta(days=days), text=f"{days} days ago")
    for words in (("list_tasks",), ("task_schedule", "--days", "1"), ("run_task", "cleanup_old_events", "days=30")):
        print(f"manage.py {' '.join(words)}", flush=True)
        call_command(*words)
    print(f"left: {', '.join(event.text for event in Event.objects.all())}")


def serve(address: str) -> None:
    from django.core.management import execute_from_command_line

    execute_from_command_line(["manage.py", "migrate", "--verbosity", "0"])
    execute_from_command_line(["manage.py", "runserver", "--noreload", address])


def main(arguments: list[str]) -> int:
    os.environ["DJANGO_SETTINGS_MODULE"] = "examples.django_alarm.settings"
    with tempfile.TemporaryDirectory(prefix="django-alarm-") as folder:
        os.environ.setdefault("ALARM_DIR", folder)
        match arguments:
            case []:
                play()
            case ["serve"]:
                serve("127.0.0.1:8000")
            case ["serve", address]:
                serve(address)
            case _:
                print(__doc__)
                return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
