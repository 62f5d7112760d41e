"""Reads CronJobs of Kubernetes from YAML or JSON: a manifest, or what `kubectl get cronjobs -o yaml` prints."""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

from msgspec.structs import replace

from rota.domain.schedule import Overlap
from rota.domain.scheduling import Timed
from rota.domain.triggers import Cron, Every
from rota.domain.triggers.zones import zone_name
from rota.errors import InvalidOptions
from rota.movein.oracle import croniter_fires
from rota.movein.plan import TEXT_LIMIT, Row, Source, named_apart, refuse

OVERLAPS: Mapping[str, Overlap] = {"Allow": "allow", "Forbid": "skip", "Replace": "replace"}
"""concurrencyPolicy and what it is here."""
NICKNAMES = {"@hourly", "@daily", "@midnight", "@weekly", "@monthly", "@yearly", "@annually"}
HIGHEST = (59, 23, 31, 12, 6)
VALUE = r"(?:[0-9]{1,2}|[A-Za-z]{3})"
ITEM = re.compile(rf"(?:[*?]|({VALUE})(?:-({VALUE}))?)(?:/([0-9]{{1,2}}))?")
SPAN = re.compile(r"(?:([0-9]+)h)?(?:([0-9]+)m)?(?:([0-9]+)s)?")
NOTES = (
    "after a stop Kubernetes starts the latest missed time: catch_up latest",
    "at clock changes Kubernetes fires whenever the clock shows the time: dst each",
    "rota starts no pods: each task has to be written; the code names its image and command",
)
TWO_WAYS = "a step in one day field and days in the other: clusters read it as both or as either; write the days out"

Document = Mapping[str, Any]


def read_cronjobs(path: Path, tz: str | None) -> Source:
    """Return the rows of a file. `tz` is the zone of those without `timeZone`: that of the cluster's controller."""
    documents = list(_documents(path))
    found = [each for each in documents if each.get("kind") == "CronJob"]
    rows = named_apart(_row(each, tz) for each in found)
    others = sorted({str(each.get("kind")) for each in documents if each.get("kind") != "CronJob"})
    return Source(
        kind="k8s",
        where=str(path),
        rows=rows,
        notes=[*NOTES, *([f"not read: {', '.join(others)}"] if others else [])],
        engine="croniter, outside the nights of clock changes" if croniter_fires("* * * * *", "UTC") else "",
        stop='suspend them at that instant: kubectl patch cronjob NAME -p \'{"spec":{"suspend":true}}\'',
    )


def _documents(path: Path) -> Iterator[Document]:
    """Return the objects of a file, also those of its lists."""
    try:
        text = path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidOptions(f"{path}: {error}") from None
    if len(text) > TEXT_LIMIT:
        raise InvalidOptions(f"{path} has more than {TEXT_LIMIT:,} characters; an import reads no more")
    for document in _parsed(path, text):
        if not isinstance(document, dict):
            continue
        one = cast("Document", document)
        items = one.get("items") if str(one.get("kind")).endswith("List") else [one]
        yield from (cast("Document", item) for item in cast("list[object]", items or []) if isinstance(item, dict))


def _parsed(path: Path, text: str) -> list[object]:
    if text.lstrip().startswith("{"):
        try:
            return [json.loads(text)]
        except ValueError as error:
            raise InvalidOptions(f"{path} is no JSON: {error}") from None
    try:
        import yaml
    except ImportError:
        raise InvalidOptions(f"{path}: YAML needs a reader: pip install pyyaml, or give JSON (-o json)") from None
    try:
        return list(yaml.safe_load_all(text))
    except yaml.YAMLError as error:
        raise InvalidOptions(f"{path} is no YAML: {error}") from None


def _row(document: Document, tz: str | None) -> Row:
    about, spec = _part(document, "metadata"), _part(document, "spec")
    name, place = str(about.get("name") or "cronjob"), about.get("namespace")
    expr, policy = str(spec.get("schedule") or ""), str(spec.get("concurrencyPolicy") or "Allow")
    zone = spec.get("timeZone") or tz
    row = Row(
        name=name[:100],
        where=(f"{place}/{name}" if place else f"cronjob {name}")[:40],
        says=" ".join(filter(None, [expr, str(spec.get("timeZone") or "")])),
        task=name[:100],
        paused=bool(spec.get("suspend")),
        body=[f"raise NotImplementedError({_pod(spec)!r})"],
        notes=_notes(spec),
    )
    try:
        if policy not in OVERLAPS:
            raise ValueError(f"Kubernetes itself refuses concurrencyPolicy: {policy}")
        if zone is None:
            raise ValueError("which zone? it has no timeZone, and its cluster decides: give --tz (of most: UTC)")
        grace = spec.get("startingDeadlineSeconds")
        timed = Timed(overlap=OVERLAPS[policy], grace=None if grace is None else float(grace))
        row = replace(row, tz=zone_name(str(zone)) or "UTC", timed=timed)
        if expr.startswith("@every"):
            raise ValueError(f"{expr} counts from when the cluster made it; write {_every(expr)} yourself")
        ours = read_expression(expr)
        return replace(row, trigger=Cron(ours, row.tz, "each"), engine=croniter_fires(ours, row.tz, "each"))
    except (ValueError, TypeError) as error:
        return refuse(row, str(error))


def read_expression(expr: str) -> str:
    """Return the line as cron has it: Kubernetes' `?` is a star, its `5/15` goes on to the end of the field, and it
    knows no weekday 7. Raise ValueError if Kubernetes refuses the line, or reads it in two ways."""
    if expr.startswith("@"):
        if expr not in NICKNAMES:
            raise ValueError(f"Kubernetes itself refuses {expr}")
        return expr
    fields = expr.split()
    if len(fields) != len(HIGHEST):
        raise ValueError(f"Kubernetes itself refuses {expr!r}: it has {len(fields)} fields, not 5")
    read = [
        ",".join(_item(item, most) for item in field.split(",")) for field, most in zip(fields, HIGHEST, strict=True)
    ]
    days, weekdays = read[2], read[4]
    if ("*/" in days and weekdays != "*") or ("*/" in weekdays and days != "*"):
        raise ValueError(TWO_WAYS)
    for place in (2, 4):  # a list with a star is a star
        if "*" in read[place].split(","):
            read[place] = "*"
    return " ".join(read)


def _item(item: str, most: int) -> str:
    found = ITEM.fullmatch(item)
    if found is None or found[3] == "0":
        raise ValueError(f"Kubernetes itself refuses {item!r}")
    first, last, step = found.groups()
    if first is None:
        return "*" if step in (None, "1") else f"*/{step}"
    if any(each is not None and each.isdigit() and int(each) > most for each in (first, last)):
        raise ValueError(f"Kubernetes itself refuses {item!r}: at most {most}")
    if step is None:
        return item
    return f"{first}-{most if last is None else last}/{step}"


def _every(expr: str) -> str:
    found = SPAN.fullmatch(expr.removeprefix("@every").strip())
    if found is None or not any(found.groups()):
        return "every 1h, or the like,"
    hours, minutes, seconds = (int(each or 0) for each in found.groups())
    return f"`{Every(hours * 3600 + minutes * 60 + seconds)}`"


def _notes(spec: Document) -> list[str]:
    job = _part(_part(spec, "jobTemplate"), "spec")
    notes = [f"backoffLimit {job.get('backoffLimit', 6)}: Kubernetes starts a failed pod again; give the task retry="]
    if job.get("activeDeadlineSeconds") is not None:
        notes.append(f"activeDeadlineSeconds {job['activeDeadlineSeconds']}: give the task timeout=")
    if (job.get("completions") or 1) != 1 or (job.get("parallelism") or 1) != 1:
        notes.append("it starts several pods (completions, parallelism); a tick of rota makes one run")
    return notes


def _pod(spec: Document) -> str:
    """Return what the job starts, in words."""
    pod = _part(_part(_part(_part(spec, "jobTemplate"), "spec"), "template"), "spec")
    containers = [each for each in cast("list[Document]", pod.get("containers") or []) if isinstance(each, dict)]
    if not containers:
        return "do what the CronJob did"
    first = containers[0]
    words: list[Any] = [*(first.get("command") or []), *(first.get("args") or [])]
    return f"do what the image {first.get('image')} did: {' '.join(map(str, words)) or 'its own command'}"


def _part(document: Document, name: str) -> Document:
    found = document.get(name)
    return cast("Document", found) if isinstance(found, dict) else {}
