"""The table of all routes."""

from typing import Any

from rota.web.api import run_changes, runs, service, tasks
from rota.web.routes import Route

ROUTES: list[Route[Any, Any]] = [
    *service.ROUTES,
    *runs.ROUTES,
    *run_changes.ROUTES,
    *tasks.ROUTES,
]
