"""The table of all routes."""

from typing import Any

from rota.web.api import (
    audit,
    doctor,
    errors,
    events,
    flows,
    ledger,
    marks,
    metrics,
    operations,
    preview,
    pull,
    run_changes,
    runs,
    schedule_actions,
    schedules,
    service,
    session,
    task_specs,
    tasks,
    timeline,
    triggers,
    workers,
)
from rota.web.routes import Route

ROUTES: list[Route[Any, Any]] = [
    *service.ROUTES,
    *session.ROUTES,
    *runs.ROUTES,
    *run_changes.ROUTES,
    *operations.ROUTES,
    *tasks.ROUTES,
    *task_specs.ROUTES,
    *pull.ROUTES,
    *schedules.ROUTES,
    *schedule_actions.ROUTES,
    *triggers.ROUTES,
    *preview.ROUTES,
    *flows.ROUTES,
    *workers.ROUTES,
    *marks.ROUTES,
    *ledger.ROUTES,
    *audit.ROUTES,
    *events.ROUTES,
    *errors.ROUTES,
    *timeline.ROUTES,
    *metrics.ROUTES,
    *doctor.ROUTES,
]
