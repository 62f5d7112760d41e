"""`rota worker`, `dev` and `workers`."""
