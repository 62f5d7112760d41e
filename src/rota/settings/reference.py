"""Every setting in one table: what `rota settings` shows and `docs/settings.md` is made of."""

import re
from collections.abc import Iterator
from pathlib import Path as File
from typing import Annotated, Any, get_args, get_origin, get_type_hints

from msgspec import NODEFAULT, Meta, Struct
from msgspec.structs import fields

from rota.settings.loader import explain
from rota.settings.model import Path, Settings
from rota.settings.overrides import PARTS, TaskOverride
from rota.settings.project import PROJECT_FILES, project_folder
from rota.settings.sources import FIELDS, PREFIX, TASKS
from rota.settings.urls import REDIS_PARTS


class Row(Struct, frozen=True):
    """One setting: its name, its variable, its default and its meaning."""

    name: str
    variable: str
    default: str
    meaning: str


class Effective(Struct, frozen=True):
    """One setting of this process: its value, and where the value comes from."""

    name: str
    value: object
    source: str
    meaning: str


def settings_table() -> list[Row]:
    meant = _meanings(Settings)
    defaults = {each.name: each.default for each in fields(Settings)}
    return [Row(name, PREFIX + name.upper(), _default(defaults[name]), meant[name]) for name in FIELDS]


def task_table() -> list[Row]:
    return list(_rows(TaskOverride, ()))


def effective(settings: Settings) -> list[Effective]:
    """Return the settings of this process, each with the line of the file that sets it; secrets are masked."""
    meant = {row.name: row.meaning for row in settings_table()}
    of_task = {row.name: row.meaning for row in task_table()}
    return [
        Effective(name, value, _with_line(source, tuple(name.split("."))), meant.get(name) or _of_task(name, of_task))
        for name, value, source in explain(settings)
    ]


def page() -> str:
    """docs/settings.md."""
    return "\n".join((_INTRODUCTION, *_table(settings_table()), _TASKS, *_table(task_table()), _REDIS))


def line_of(text: str, path: Path) -> int | None:
    """Return the line of a TOML file that sets `path`; None if `line_of` does not find it."""
    table: Path = ()
    for number, line in enumerate(text.splitlines(), 1):
        if header := re.match(r"\s*\[([^\[\]]+)\]\s*(#.*)?$", line):
            table = _keys(header[1])
        elif setting := re.match(
            r"\s*((?:[\w-]+|\"[^\"]*\"|'[^']*')(?:\s*\.\s*(?:[\w-]+|\"[^\"]*\"|'[^']*'))*)\s*=", line
        ):
            here = (*table, *_keys(setting[1]))
            if here == path[: len(here)]:  # the setting itself, or the inline table around it
                return number
    return None


def _with_line(source: str, path: Path) -> str:
    if source not in PROJECT_FILES:
        return source
    file: File = project_folder() / source
    inside = path if source == "rota.toml" else ("tool", "rota", *path)
    try:
        text = file.read_text(encoding="utf-8-sig")
    except OSError:  # the file was removed meanwhile
        return source
    # A bare number stands for the first field of a table: `retry = 5` is retry.limit.
    found = line_of(text, inside)
    return source if found is None else f"{source}, line {found}"


def _keys(dotted: str) -> Path:
    return tuple(part.strip("\"'") for part in re.findall(r"[\w-]+|\"[^\"]*\"|'[^']*'", dotted))


def _rows(kind: type[Struct], path: Path) -> Iterator[Row]:
    meant = _meanings(kind)
    for name in kind.__struct_fields__:
        if not path and name in PARTS:
            yield from _rows(PARTS[name][0], (name,))
            continue
        inner = (*path, name)
        yield Row(".".join(inner), f"{TASKS}NAME__{'__'.join(inner).upper()}", "", meant[name])


def _of_task(name: str, table: dict[str, str]) -> str:
    return next((text for field, text in table.items() if name.endswith(f".{field}")), "")


def _meanings(kind: type[Struct]) -> dict[str, str]:
    return {name: _meaning(hint) for name, hint in get_type_hints(kind, include_extras=True).items()}


def _meaning(hint: Any) -> str:
    remarks = get_args(hint)[1:] if get_origin(hint) is Annotated else ()
    return next((remark.description or "" for remark in remarks if isinstance(remark, Meta)), "")


def _default(value: object) -> str:
    if value is NODEFAULT:
        return ".rota/rota.db"
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:g}" if isinstance(value, float) and value < 1e6 else str(value)


def _table(rows: list[Row]) -> Iterator[str]:
    """Yield the rows as a Markdown table; without a column for defaults if no row has one."""
    defaults = any(row.default for row in rows)
    yield "| Setting | Variable |" + (" Default |" if defaults else "") + " |"
    yield "|---|---|" + ("---|" if defaults else "") + "---|"
    for row in rows:
        default = f" {f'`{row.default}`' if row.default else ''} |" if defaults else ""
        yield f"| `{row.name}` | `{row.variable}` |{default} {row.meaning} |"


_INTRODUCTION = """\
# Settings

A setting is given in code (`Rota(lease=10)`), in the environment, in `rota.toml` or in `[tool.rota]` of
`pyproject.toml`. Where several give it, the first in this order wins. The project is the nearest folder, from the
working directory upwards, that holds one of the two files. An unknown setting is an error, which names the nearest.
A table of a task that the app does not have changes nothing: the worker warns of it when it starts, and `rota settings`
and `rota doctor` name it. A process reads its settings when it starts: restart the workers after a change.

`rota settings` shows the value of each setting and where it comes from. Passwords are masked. This page is made by
`rota settings --reference`.

```toml
# rota.toml
url = "redis://localhost:6379/0"
lease = "10s"             # seconds, or 30s, 5m, 2h, 1d

[tasks.resize]
enabled = false
retry = { limit = 5, delay = "1m" }

[limits.gpu]
total = 4                 # the number of the limit that tasks name with Limit(2, name="gpu")
```

## Of a process
"""
_TASKS = """
## Of one task

An operator changes these without touching the code: in `[tasks.NAME]` of a file, or by a variable. In the variable,
`NAME` is the task's name in capitals, with `_` for every character that is no letter or digit:
`ROTA_TASKS__SEND_MAIL__RETRY__LIMIT=5`. Everything else stays as the code has it. `retry`, `limit`, `rate` and
`activity` are tables, and a bare number is their first field: `retry = 5` is `retry.limit = 5`.
"""
_REDIS = f"""
## A Redis URL from its parts

Without a URL, {", ".join(f"`{name}`" for name in REDIS_PARTS)}
make one. Only the host is required.

`url = "env:REDIS_URL"`, as keyword, variable or in a file, takes the URL from that variable. A project file that
another user can have written is not obeyed; `ROTA_TRUST` names folders whose files are, as `PATH` does.
[Which file SQLite takes, and whose files are obeyed](sqlite.md).
"""
