"""`rota doctor`."""
