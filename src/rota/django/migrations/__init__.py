"""The migrations of rota in a Django project."""
