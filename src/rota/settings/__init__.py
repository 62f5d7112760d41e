"""Settings: keyword > `ROTA_*` > rota.toml > `[tool.rota]` in pyproject.toml > default, each with its source."""

from rota.domain.text import masked
from rota.settings.loader import (
    app_reference,
    default_url,
    explain,
    load,
    passed_over,
    unknown_overrides,
    unknown_tasks,
)
from rota.settings.model import Settings
from rota.settings.overrides import LimitOverride, RateOverride, RetryOverride, TaskOverride
from rota.settings.project import project_folder
from rota.settings.trust import imports_first
from rota.settings.urls import from_environment, lacks_namespace

__all__ = [
    "LimitOverride",
    "RateOverride",
    "RetryOverride",
    "Settings",
    "TaskOverride",
    "app_reference",
    "default_url",
    "explain",
    "from_environment",
    "imports_first",
    "lacks_namespace",
    "load",
    "masked",
    "passed_over",
    "project_folder",
    "unknown_overrides",
    "unknown_tasks",
]
