"""Writes the rows of an import as Python: a task for each, with its schedule. The code is the user's to change."""

import keyword
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import cast

from rota.domain.scheduling import Timed
from rota.movein.plan import Row, Source

WIDTH = 116
RESERVED = {"app", "shell", "asyncio", "getpass", "os", "signal", "tempfile", "suppress", "datetime"}
"""Names of the module that a function may not take."""


def write_code(source: Source, at: datetime | None = None, scheduled: bool = True) -> str:
    """Return a module. Without `scheduled`, its tasks have no schedules: the store has them."""
    rows = [row for row in source.rows if not row.refused]
    refused = [row for row in source.rows if row.refused]
    names = ["Limit", "Rota"] if any(row.limit for row in rows) else ["Rota"]
    dated = scheduled and (at is not None or any(row.timed.start or row.timed.end for row in rows))
    imports = {*source.imports, *(line for row in rows for line in row.imports)}
    imports |= {"from datetime import datetime"} if dated else set()
    plain, ours = (
        sorted(imports, key=lambda line: (line.startswith("from"), line)),
        f"from rota import {', '.join(names)}",
    )
    lines = [
        f'"""Tasks that {source.kind} had. `rota import {source.kind}` wrote this file; change it as you like."""',
        "",
        *plain,
        *([""] if plain else []),
        ours,
        "",
        "app = Rota()",
    ]
    if source.prelude and rows:
        lines += ["", "", *source.prelude]
    taken: set[str] = set()
    for row in rows:
        lines += ["", "", *_task(row, at, scheduled, taken)]
    if refused:
        lines += [
            "",
            "",
            "# Not carried over:",
            *(_comment(f"{row.where}: {row.says}: {row.refused}") for row in refused),
        ]
    return "\n".join(lines) + "\n"


def _task(row: Row, at: datetime | None, scheduled: bool, taken: set[str]) -> Iterator[str]:
    yield _comment(f"{row.where}: {row.says}")
    options = [f"name={quoted(row.name)}"]
    if scheduled:
        options += [f"schedule={quoted(str(row.trigger))}", *_timed(row.timed, at)]
    options += [
        f"{name}={quoted(value)}" for name in ("queue", "lost") if (value := getattr(row.timed, name)) is not None
    ]
    options += [f"priority={row.options.priority}"] if row.options.priority else []
    options += [f"limit=Limit({row.limit})"] if row.limit else []
    options += ["enabled=False"] if row.paused else []
    one = f"@app.task({', '.join(options)})"
    if len(one) <= WIDTH:
        yield one
    else:
        yield "@app.task("
        yield from (f"    {option}," for option in options)
        yield ")"
    yield f"{'async ' if row.is_async else ''}def {_identifier(row.name, taken)}() -> None:"
    yield from (f"    {line}" for line in row.body)


def _timed(timed: Timed, at: datetime | None) -> Iterator[str]:
    if timed.overlap is not None:
        yield f"overlap={quoted(timed.overlap)}"
    if timed.catch_up != "latest":
        yield f"catch_up={quoted(timed.catch_up)}"
    if timed.grace is not None:
        yield f"grace={timed.grace!r}"
    if timed.times is not None:
        yield f"times={timed.times}"
    start = later(timed.start, at)
    for name, instant in (("start", start), ("end", timed.end)):
        if instant is not None:
            yield f"{name}=datetime.fromisoformat({quoted(instant.isoformat())})"


def later(start: datetime | None, at: datetime | None) -> datetime | None:
    """Return the instant from which rota fires: `start` of the row or the cut-over, the later of the two."""
    return max((each for each in (start, at) if each is not None), default=None)


def quoted(value: object) -> str:
    """Return a JSON value as Python, with double quotes where they need no escape."""
    match value:
        case str() if not {'"', "'"} & set(value):
            return f'"{repr(value)[1:-1]}"'
        case dict():
            items = cast("dict[object, object]", value).items()
            return "{" + ", ".join(f"{quoted(key)}: {quoted(item)}" for key, item in items) + "}"
        case list():
            return "[" + ", ".join(map(quoted, cast("list[object]", value))) + "]"
        case _:
            return repr(value)


def literals(args: Sequence[object], kwargs: Mapping[str, object]) -> str:
    """Return the arguments of a call as Python. Arguments are JSON."""
    plain = all(name.isidentifier() and not keyword.iskeyword(name) for name in kwargs)
    named = [f"{name}={quoted(value)}" for name, value in kwargs.items()] if plain else [f"**{quoted(dict(kwargs))}"]
    return ", ".join([*map(quoted, args), *(named if kwargs else [])])


def _identifier(name: str, taken: set[str]) -> str:
    word = re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_") or "task"
    word = f"task_{word}" if word[0].isdigit() or keyword.iskeyword(word) or word in RESERVED else word
    found, number = word, 1
    while found in taken:
        number += 1
        found = f"{word}_{number}"
    taken.add(found)
    return found


def _comment(text: str) -> str:
    line = "# " + "".join(letter if letter.isprintable() else "?" for letter in text)
    return line if len(line) <= WIDTH else f"{line[: WIDTH - 1]}…"
