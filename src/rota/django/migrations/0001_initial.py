"""The outbox, and the rows that the admin shows: names without tables."""

from typing import ClassVar

from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies: ClassVar = []

    operations: ClassVar = [
        migrations.CreateModel(
            name="OutboxRun",
            fields=[
                ("id", models.CharField(max_length=63, primary_key=True, serialize=False)),
                ("run", models.TextField()),
                ("created_at", models.DateTimeField(db_index=True)),
            ],
            options={"db_table": "rota_outbox", "default_permissions": ()},
        ),
        migrations.CreateModel(
            name="Flow",
            fields=[
                ("id", models.CharField(max_length=200, primary_key=True, serialize=False)),
            ],
            options={
                "verbose_name": "flow",
                "verbose_name_plural": "flows",
                "managed": False,
                "default_permissions": (),
            },
        ),
        migrations.CreateModel(
            name="Run",
            fields=[
                ("id", models.CharField(max_length=64, primary_key=True, serialize=False)),
            ],
            options={
                "verbose_name": "run",
                "verbose_name_plural": "runs",
                "managed": False,
                "default_permissions": ("view", "change"),
            },
        ),
        migrations.CreateModel(
            name="Schedule",
            fields=[
                ("id", models.CharField(max_length=200, primary_key=True, serialize=False)),
            ],
            options={
                "verbose_name": "schedule",
                "verbose_name_plural": "schedules",
                "managed": False,
                "default_permissions": ("change",),
            },
        ),
        migrations.CreateModel(
            name="Task",
            fields=[
                ("id", models.CharField(max_length=200, primary_key=True, serialize=False)),
            ],
            options={
                "verbose_name": "task",
                "verbose_name_plural": "tasks",
                "managed": False,
                "default_permissions": (),
            },
        ),
        migrations.CreateModel(
            name="Worker",
            fields=[
                ("id", models.CharField(max_length=200, primary_key=True, serialize=False)),
            ],
            options={
                "verbose_name": "worker",
                "verbose_name_plural": "workers",
                "managed": False,
                "default_permissions": (),
            },
        ),
    ]
