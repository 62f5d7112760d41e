"""`rota demo`."""
