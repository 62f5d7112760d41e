"""The models of rota in a Django project."""

from rota.django.admin_models import Flow, Run, Schedule, Task, Worker

__all__ = ["Flow", "Run", "Schedule", "Task", "Worker"]
