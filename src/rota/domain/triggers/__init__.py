"""Triggers: values that say when to fire, and that have a text."""

from rota.domain.triggers.at_start import AtStart
from rota.domain.triggers.base import Trigger
from rota.domain.triggers.combined import Excluding, Intersection, Union
from rota.domain.triggers.cron import Cron
from rota.domain.triggers.every import Every
from rota.domain.triggers.named import DailyAt, Monthly, Weekly
from rota.domain.triggers.once import At

__all__ = [
    "At",
    "AtStart",
    "Cron",
    "DailyAt",
    "Every",
    "Excluding",
    "Intersection",
    "Monthly",
    "Trigger",
    "Union",
    "Weekly",
]
