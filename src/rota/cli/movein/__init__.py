"""`rota import`."""
