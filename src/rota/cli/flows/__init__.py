"""`rota flows`, `marks` and `reset`."""
