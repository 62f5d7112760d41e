"""Gather keywords, environment and project files into one flat map; the strongest source of a setting wins."""

import logging
import os
import re
from collections.abc import Iterator, Mapping
from typing import Any, Literal, cast

from msgspec import Struct

from rota.domain.text import did_you_mean
from rota.errors import InvalidOptions
from rota.settings.model import Path, Settings, fold
from rota.settings.overrides import PARTS, TaskOverride
from rota.settings.project import PROJECT_FILES, files_to_obey, project_folder, table_of
from rota.settings.readers import RawValue
from rota.settings.trust import TRUST
from rota.settings.urls import REDIS_PARTS, redis_url

log = logging.getLogger("rota")

PREFIX = "ROTA_"
SERVICE = ("ROTA_TOKEN", "ROTA_TOKENS", "ROTA_SERVER")
"""Variables of the service and its callers. They hold secrets: `rota settings` shows none of them."""
FIELDS = [name for name in Settings.__struct_fields__ if name not in ("tasks", "limits", "sources")]
VARIABLES = [*(PREFIX + name.upper() for name in FIELDS), *REDIS_PARTS, TRUST]
TASKS = "ROTA_TASKS__"

_KUBERNETES = re.compile(r"ROTA(_\w+)?_(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT_\d+_(TCP|UDP|SCTP)(_\w+)?)")
"""Kubernetes sets these variables in every pod, if a service is named rota or rota-something."""


class Layer(Struct, frozen=True):
    """One layer of settings: a project file, or the keywords of `Rota(...)`."""

    source: str
    prefix: str
    equals: str
    form: Literal["toml", "keyword"]

    def raw(self, key: str, value: object) -> RawValue:
        return RawValue(value, self.source, f"{self.prefix}{key}{self.equals}", self.form)

    def table(self, key: str, value: object) -> Mapping[str, Any]:
        if not isinstance(value, Mapping):
            raise InvalidOptions(f"{self.raw(key, value).written}{value!r:.80}: expected a table")
        return cast("Mapping[str, Any]", value)


def gather(keywords: Mapping[str, object]) -> dict[Path, RawValue]:
    """Return every setting that is set anywhere, with the value of its strongest source."""
    raw = _in_files()
    code = dict(_in_tree(keywords, Layer("keyword", "", "=", "keyword")))
    named = {path[1] for path in (*raw, *code) if path[0] == "tasks"}
    for path, value in _in_environment():
        raw[path] = value
        if path[0] == "tasks":
            raw |= {("tasks", name, *path[2:]): value for name in named if fold(name) == path[1]}
    raw |= code
    parts = _redis_parts()
    if parts and ("url",) in raw and raw["url",].source == "ROTA_URL" and raw["url",].value != _spelled(parts):
        raise InvalidOptions(f"ROTA_URL and {next(iter(parts))} name different stores; unset one of them")
    if ("url",) not in raw and (url := redis_url(parts)) is not None:
        raw["url",] = RawValue(url, "ROTA_REDIS_HOST", "", "text")
    return raw


def _in_files() -> dict[Path, RawValue]:
    raw: dict[str, dict[Path, RawValue]] = {}
    folder = project_folder()
    obeyed = files_to_obey(folder)
    for name in PROJECT_FILES:
        file = folder / name
        prefix = f"{file}: " if name == "rota.toml" else f"{file}: tool.rota."
        raw[name] = dict(_in_tree(table_of(file) if file in obeyed else {}, Layer(name, prefix, " = ", "toml")))
    strong, weak = raw["rota.toml"], raw["pyproject.toml"]
    if strong and weak:
        both = ", ".join(".".join(path) for path in strong if path in weak)
        log.debug("rota.toml wins over pyproject.toml, which also has settings; both say: %s", both or "nothing")
    return weak | strong


def _in_tree(tree: Mapping[str, object], layer: Layer) -> Iterator[tuple[Path, RawValue]]:
    for key, value in tree.items():
        if key == "tasks":
            for name, table in layer.table("tasks", value).items():
                yield from _in_task(name, layer.table(f"tasks.{name}", table), layer)
        elif key == "limits":
            for name, table in layer.table("limits", value).items():
                yield from _in_limit(name, layer.table(f"limits.{name}", table), layer)
        elif key not in FIELDS:
            raise _unknown(layer.prefix, key, [*FIELDS, "tasks", "limits"])
        elif value is not None:
            yield (key,), layer.raw(key, value)


def _in_limit(name: str, table: Mapping[str, object], layer: Layer) -> Iterator[tuple[Path, RawValue]]:
    for key, value in table.items():
        if key != "total":
            raise _unknown(f"{layer.prefix}limits.{name}.", key, ["total"])
        yield ("limits", name, key), layer.raw(f"limits.{name}.{key}", value)


def _in_task(task: str, table: Mapping[str, object], layer: Layer) -> Iterator[tuple[Path, RawValue]]:
    for key, value in table.items():
        path = ("tasks", task, key)
        if key not in TaskOverride.__struct_fields__:
            if isinstance(value, Mapping):
                raise InvalidOptions(
                    f"{layer.prefix}tasks.{task}.{key} is not a setting; if the task is {task}.{key}, "
                    f'write [tasks."{task}.{key}"]'
                )
            raise _unknown(f"{layer.prefix}tasks.{task}.", key, TaskOverride.__struct_fields__)
        if key not in PARTS:
            yield path, layer.raw(".".join(path), value)
            continue
        fields = PARTS[key][0].__struct_fields__
        if not isinstance(value, Mapping):
            yield (*path, fields[0]), layer.raw(".".join(path), value)
            continue
        for inner, each in layer.table(key, cast("object", value)).items():
            if inner not in fields:
                raise _unknown(f"{layer.prefix}{'.'.join(path)}.", inner, fields)
            yield (*path, inner), layer.raw(".".join((*path, inner)), each)


def _in_environment() -> Iterator[tuple[Path, RawValue]]:
    """Yield the variables that start with ROTA_. An empty variable counts as not set: shells and compose files make
    them."""
    for name, text in sorted(os.environ.items()):
        if (
            not name.startswith(PREFIX)
            or not text
            or _is_foreign(name, text)
            or name in (*REDIS_PARTS, *SERVICE, TRUST)
        ):
            continue
        raw = RawValue(text, name, f"{name}=", "text")
        if name.startswith(TASKS):
            yield _task_variable(name), raw
        elif name in VARIABLES:
            yield (name.removeprefix(PREFIX).lower(),), raw
        else:
            raise _unknown("", name, [*VARIABLES, TASKS + "NAME__ENABLED"])


def _task_variable(name: str) -> Path:
    """Return the path of ROTA_TASKS__SEND_MAIL__RETRY__LIMIT. It is read from the end: a task name may contain `__`."""
    task, _, field = name.removeprefix(TASKS).lower().rpartition("__")
    outer, _, part = task.rpartition("__")
    if outer and part in PARTS and field in PARTS[part][0].__struct_fields__:
        return "tasks", outer, part, field
    if not task or field not in TaskOverride.__struct_fields__:
        known = [f"{TASKS}{task.upper() or 'NAME'}__{each.upper()}" for each in TaskOverride.__struct_fields__]
        raise _unknown("", name, known)
    return ("tasks", task, field, PARTS[field][0].__struct_fields__[0]) if field in PARTS else ("tasks", task, field)


def _redis_parts() -> dict[str, str]:
    return {name: text for name in REDIS_PARTS if (text := os.environ.get(name, "")) and not _is_foreign(name, text)}


def _spelled(parts: Mapping[str, str]) -> str | None:
    """Return the URL that the ROTA_REDIS_* variables make; None without a host."""
    return redis_url(parts) if "ROTA_REDIS_HOST" in parts else None


def _is_foreign(name: str, text: str) -> bool:
    """Return whether a variable is not a setting: it is for tests, or Kubernetes set it. A service rota-redis sets
    ROTA_REDIS_PORT=tcp://10.0.0.1:6379."""
    linked = name.endswith("_PORT") and re.match(r"(tcp|udp|sctp)://", text) is not None
    return linked or name.startswith("ROTA_TEST_") or _KUBERNETES.fullmatch(name) is not None


def _unknown(prefix: str, key: str, known: "list[str] | tuple[str, ...]") -> InvalidOptions:
    hint = did_you_mean(key, known, f"; there are: {', '.join(known)}")
    return InvalidOptions(f"{prefix}{key} is not a setting{hint}")
