"""Load the settings of a process into one checked value, and say where each setting came from."""

import os
from collections.abc import Iterable
from typing import Any, get_type_hints

from msgspec import Struct

from rota.domain.policy import Limit
from rota.domain.text import did_you_mean
from rota.errors import InvalidOptions
from rota.settings.model import Path, Settings, fold
from rota.settings.overrides import PARTS, TaskOverride, fields_set
from rota.settings.readers import RawValue, read
from rota.settings.sources import FIELDS, gather
from rota.settings.urls import from_environment

OTHERS_URLS = ("REDIS_URL", "DATABASE_URL")
"""Variables in which hosting platforms give apps the URL of a server."""


def load(**keywords: object) -> Settings:
    """Return the settings of this process: keyword (not None) > `ROTA_*` > rota.toml > `[tool.rota]` > default."""
    raw = gather(keywords)
    hints = _hints(Settings)
    sources = {path: each.source for path, each in raw.items()}
    values: dict[str, Any] = {path[0]: read(hints[path[0]], each) for path, each in raw.items() if len(path) == 1}
    if "url" in values:
        values["url"] = from_environment(values["url"], f"{raw['url',].written}{values['url']!r}")
    names = dict.fromkeys(path[1] for path in raw if path[0] == "tasks")
    tasks = {name: _override(name, raw) for name in names}
    limits = {path[1]: _number_of(path[1], each) for path, each in raw.items() if path[0] == "limits"}
    return Settings(**values, tasks=tasks, limits=limits, sources=sources)


def explain(settings: Settings) -> list[tuple[str, object, str]]:
    """Name, value and source of every setting, then of every override; secrets masked."""
    rows: list[tuple[str, object, str]] = []
    for name in FIELDS:
        value = settings.shown(name)
        rows.append((name, value, settings.source(name)))
    for task, override in sorted(settings.tasks.items()):
        for path, value in _leaves(("tasks", task), override):
            rows.append((".".join(path), value, settings.source(*path)))
    rows += [
        (f"limits.{name}.total", n, settings.source("limits", name, "total")) for name, n in settings.limits.items()
    ]
    return rows


def unknown_tasks(settings: Settings, known_names: Iterable[str]) -> list[str]:
    """Return a warning for each override that changes nothing, because no task has its name."""
    return [
        f"{' and '.join(settings.sources_of(task))}: {words}"
        for task, words in unknown_overrides(settings, known_names).items()
    ]


def unknown_overrides(settings: Settings, known_names: Iterable[str]) -> dict[str, str]:
    """Return the names in overrides that no task has. Each comes with a sentence that suggests the nearest task
    name."""
    known = set(known_names)
    folded = {fold(name) for name in known}
    there = f"; there are: {', '.join(sorted(known))}" if known else "; no tasks are defined"
    return {
        task: f"there is no task {task}{did_you_mean(task, known, there)}"
        for task in sorted(settings.tasks)
        if task not in known and not (settings.is_folded(task) and task in folded)
    }


def passed_over(settings: Settings) -> list[str]:
    """Return a sentence for each variable in OTHERS_URLS that is set but not used, because the default store is."""
    if settings.source("url") != "default":
        return []
    return [
        f'{name} is set, but not used: the store is {settings.url}; url="env:{name}" or ROTA_URL=env:{name} takes it'
        for name in OTHERS_URLS
        if os.environ.get(name)
    ]


def default_url() -> str:
    """Return the URL of the store that an app without a `url` uses."""
    return load().store_url


def app_reference() -> str | None:
    """Return the app that the environment or the project names, as module:attribute."""
    return load().app


def _override(task: str, raw: dict[Path, RawValue]) -> TaskOverride:
    own = {path[2:]: each for path, each in raw.items() if path[:2] == ("tasks", task)}
    values: dict[str, Any] = {}
    parts: dict[str, dict[str, Any]] = {}
    for (name, *inner), each in own.items():
        if inner:
            parts.setdefault(name, {})[inner[0]] = read(_hints(PARTS[name][0])[inner[0]], each)
        else:
            values[name] = read(_hints(TaskOverride)[name], each)
    try:
        for name, part in parts.items():
            values[name] = PARTS[name][0](**part)
        return TaskOverride(**values)
    except ValueError as error:
        sources = " and ".join(sorted({each.source for each in own.values()}))
        raise InvalidOptions(f"{sources}: task {task}: {error}") from None


def _number_of(name: str, raw: RawValue) -> int:
    total: int = read(int, raw)
    try:
        Limit(total, name=name)
    except ValueError as error:
        raise InvalidOptions(f"{raw.source}: limits.{name}: {error}") from None
    return total


def _leaves(path: Path, part: Struct) -> list[tuple[Path, object]]:
    found: list[tuple[Path, object]] = []
    for name, value in fields_set(part).items():
        found += _leaves((*path, name), value) if isinstance(value, Struct) else [((*path, name), value)]
    return found


def _hints(kind: type[Struct]) -> dict[str, Any]:
    return get_type_hints(kind, include_extras=True)
