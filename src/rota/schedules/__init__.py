"""Schedules, plans and deadlines: work at a given time."""
