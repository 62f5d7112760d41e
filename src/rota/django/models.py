"""The models of rota in a Django project."""

from rota.django.admin_models import Flow, Run, Schedule, Task, Worker
from rota.django.outbox_model import OutboxRun

__all__ = ["Flow", "OutboxRun", "Run", "Schedule", "Task", "Worker"]
