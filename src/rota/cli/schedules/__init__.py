"""`rota schedules`."""
