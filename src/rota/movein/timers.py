"""Reads timers of systemd from their unit files."""

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from functools import reduce
from heapq import merge
from itertools import groupby
from pathlib import Path

from msgspec.structs import replace

from rota.domain.schedule import CatchUp
from rota.domain.scheduling import Timed
from rota.errors import InvalidOptions
from rota.movein.calendar import Event, calendar_engine, calendar_model, read_event
from rota.movein.fires import with_named
from rota.movein.plan import TEXT_LIMIT, Fires, Row, Source, named_apart, refuse
from rota.movein.shell import IMPORTS, PRELUDE

DSTS = ("skip", "vixie", "each", "twice")
COUNTING = ("OnActiveSec", "OnBootSec", "OnStartupSec", "OnUnitActiveSec", "OnUnitInactiveSec")
CHANGES = ("OnClockChange", "OnTimezoneChange")
YES = ("1", "yes", "y", "true", "t", "on")
NO = ("0", "no", "n", "false", "f", "off")
NOTES = (
    "a service that still runs is not started a second time: overlap skip",
    "Persistent=true makes up the latest time of a stop: catch_up latest; without it: skip",
    "systemd starts no service again whose machine died: lost fail",
    "drop-ins (NAME.timer.d) are not read: systemctl cat NAME.timer shows all",
)

Unit = Mapping[str, Sequence[str]]
"""The values of each key of one section; an empty value takes back those before it."""


def read_timers(paths: Sequence[Path], now: datetime, tz: str | None, zone_from: str) -> Source:
    """Return the rows of timer units: of files, and of all `*.timer` in folders. `tz` is the zone of events that name
    none."""
    files = [file for path in paths for file in (sorted(path.glob("*.timer")) if path.is_dir() else [path])]
    if not files:
        raise InvalidOptions(f"{', '.join(map(str, paths))}: there is no *.timer")
    rows = named_apart(_row(file, _section(_text(file), "Timer"), tz, now) for file in files)
    proven = any(row.engine is not None for row in rows)
    return Source(
        kind="systemd",
        where=", ".join(map(str, paths)),
        rows=rows,
        notes=[*NOTES, f"events without a zone are in {tz} ({zone_from})" if tz else "no zone is known: give --tz"],
        engine="systemd-analyze calendar, outside the days of clock changes" if proven else "",
        imports=IMPORTS,
        prelude=PRELUDE,
        stop="systemctl disable --now NAME.timer at that instant",
    )


def _text(path: Path) -> str:
    try:
        text = path.read_text(errors="surrogateescape")
    except OSError as error:
        raise InvalidOptions(f"{path}: {error.strerror or error}") from None
    if len(text) > TEXT_LIMIT:
        raise InvalidOptions(f"{path} has more than {TEXT_LIMIT:,} characters; an import reads no more")
    return text


def _section(text: str, name: str) -> Unit:
    found: dict[str, list[str]] = {}
    here = ""
    for line in re.sub(r"\\\n", " ", text).splitlines():
        stripped = line.strip()
        if stripped.startswith(("#", ";")) or not stripped:
            continue
        if stripped.startswith("["):
            here = stripped.strip("[]")
        elif here == name:
            key, _, value = (part.strip() for part in stripped.partition("="))
            found[key] = [*found.get(key, []), value] if value else []
    return found


def _row(path: Path, unit: Unit, tz: str | None, now: datetime) -> Row:
    name = path.name.removesuffix(".timer")
    service = _last(unit, "Unit") or f"{name}.service"
    events = unit.get("OnCalendar", [])
    row = Row(
        name=name[:100],
        where=path.name[:40],
        says="; ".join(f"OnCalendar={each}" for each in events) or "no OnCalendar",
        task=name[:100],
        notes=_notes(unit),
        is_async=True,
        body=[f'await shell("systemctl start --wait {service}")'],
    )
    try:
        if not re.fullmatch(r"[\w:.@\\-]{1,255}", service):
            raise ValueError(f"systemd itself refuses the unit {service!r}")
        counting = [key for key in COUNTING if unit.get(key)]
        if counting:
            raise ValueError(f"{counting[0]} counts from a boot or from the last run: write `every 1h` or the like")
        if any(_yes(unit, key) for key in CHANGES):
            raise ValueError("rota hears of no change of the clock or of the zone")
        if not events:
            raise ValueError("it has no OnCalendar")
        catch_up: CatchUp = "latest" if _yes(unit, "Persistent") else "skip"
        row = replace(row, timed=Timed(overlap="skip", catch_up=catch_up, lost="fail"))
        return _timed(row, [read_event(each, tz) for each in events], now)
    except ValueError as error:
        return refuse(row, str(error))


def _timed(row: Row, events: Sequence[Event], now: datetime) -> Row:
    """Return the row with the trigger that differs least at the clock changes, and with what differs."""
    candidates = [reduce(lambda a, b: a | b, [event.sets.trigger(event.tz, dst) for event in events]) for dst in DSTS]
    engines = [engine for event in events if (engine := calendar_engine(event)) is not None]
    row = replace(
        row,
        tz=events[0].tz,
        trigger=candidates[0],
        model=_either([calendar_model(event) for event in events]),
        engine=_either(engines) if engines else None,
    )
    return with_named(row, now, candidates)


def _either(parts: Sequence[Fires]) -> Fires:
    def fires(start: datetime, end: datetime) -> Iterator[datetime]:
        return (at for at, _ in groupby(merge(*(each(start, end) for each in parts))))

    return fires


def _notes(unit: Unit) -> list[str]:
    notes: list[str] = []
    if spread := _last(unit, "RandomizedDelaySec"):
        notes.append(f"RandomizedDelaySec={spread}: left out; rota's `jitter` on the schedule does it")
    if unit.get("AccuracySec"):
        notes.append("AccuracySec is left out: rota fires on the second")
    if _last(unit, "WakeSystem"):
        notes.append("WakeSystem is left out: rota wakes no machine")
    return notes


def _last(unit: Unit, key: str) -> str:
    return unit[key][-1] if unit.get(key) else ""


def _yes(unit: Unit, key: str) -> bool:
    value = _last(unit, key).lower()
    if value and value not in (*YES, *NO):
        raise ValueError(f"systemd itself refuses {key}={value}")
    return value in YES
