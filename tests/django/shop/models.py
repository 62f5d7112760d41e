"""The only model of the shop: what its tasks leave behind."""

from django.db import models


class Order(models.Model):
    """An order; a task writes that it was seen."""

    name: "models.CharField[str, str]" = models.CharField(max_length=100)
    seen: "models.IntegerField[int, int]" = models.IntegerField(default=0)

    class Meta:
        app_label = "shop"

    def __str__(self) -> str:
        return self.name
