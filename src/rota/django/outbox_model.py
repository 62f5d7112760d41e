"""The table of the outbox: runs that a transaction of the project has enqueued, until a store has them."""

from datetime import datetime

from django.db import models


class OutboxRun(models.Model):
    """A run, as JSON. `id` is the id of the run, so that a row that is handed over twice makes one run."""

    id: "models.CharField[str, str]" = models.CharField(primary_key=True, max_length=63)
    run: "models.TextField[str, str]" = models.TextField()
    created_at: "models.DateTimeField[datetime, datetime]" = models.DateTimeField(db_index=True)

    class Meta:
        app_label = "rota"
        db_table = "rota_outbox"
        default_permissions = ()

    def __str__(self) -> str:
        return self.id
