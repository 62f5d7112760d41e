"""What the alarm has seen."""

from datetime import datetime

from django.db import models


class Event(models.Model):
    """One event of the alarm."""

    at: "models.DateTimeField[datetime, datetime]" = models.DateTimeField()
    text: "models.CharField[str, str]" = models.CharField(max_length=200)

    class Meta:
        app_label = "alarm"

    def __str__(self) -> str:
        return self.text
