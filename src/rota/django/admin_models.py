"""What the admin shows: names for content types, permissions and the log of the admin. No table is behind them; the
rows come from rota's store."""

from django.db import models


class Run(models.Model):
    id: "models.CharField[str, str]" = models.CharField(primary_key=True, max_length=64)

    class Meta:
        app_label = "rota"
        managed = False
        default_permissions = ("view", "change")
        verbose_name = "run"
        verbose_name_plural = "runs"


class Schedule(models.Model):
    id: "models.CharField[str, str]" = models.CharField(primary_key=True, max_length=200)

    class Meta:
        app_label = "rota"
        managed = False
        default_permissions = ("change",)
        verbose_name = "schedule"
        verbose_name_plural = "schedules"


class Task(models.Model):
    id: "models.CharField[str, str]" = models.CharField(primary_key=True, max_length=200)

    class Meta:
        app_label = "rota"
        managed = False
        default_permissions = ()
        verbose_name = "task"
        verbose_name_plural = "tasks"


class Flow(models.Model):
    id: "models.CharField[str, str]" = models.CharField(primary_key=True, max_length=200)

    class Meta:
        app_label = "rota"
        managed = False
        default_permissions = ()
        verbose_name = "flow"
        verbose_name_plural = "flows"


class Worker(models.Model):
    id: "models.CharField[str, str]" = models.CharField(primary_key=True, max_length=200)

    class Meta:
        app_label = "rota"
        managed = False
        default_permissions = ()
        verbose_name = "worker"
        verbose_name_plural = "workers"
