"""`rota tasks`, `call` and `clear`."""
