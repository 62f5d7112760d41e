"""The Django application "rota.django"."""

from django.apps import AppConfig


class RotaConfig(AppConfig):
    """Imports the tasks of every installed app when Django is ready, and notices when this process begins to serve. It
    queries no database and opens no store."""

    name = "rota.django"
    label = "rota"
    verbose_name = "Rota"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from rota.django import discovery, serving
        from rota.django import system_checks as system_checks  # registers what `manage.py check` asks of rota
        from rota.django import tasks_api as tasks_api  # registers the system check that asks every task backend

        discovery.discover()
        serving.watch()
