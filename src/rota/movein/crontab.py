"""Reads a crontab as Vixie cron and cronie do: what they would refuse, or read in two ways, is refused here."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from rota.domain.scheduling import Timed
from rota.domain.triggers import Cron
from rota.errors import InvalidOptions
from rota.movein.code import literals
from rota.movein.oracle import croniter_fires
from rota.movein.plan import TEXT_LIMIT, Row, Source, named_apart, refuse
from rota.movein.shell import IMPORTS, PRELUDE

ASSIGNMENT = re.compile(r"""\s*(?:"([^"]*)"|'([^']*)'|([A-Za-z_][A-Za-z0-9_]*))\s*=\s*(.*?)\s*""")
VALUE = r"(?:[0-9]{1,4}|[A-Za-z]{3})"
ITEM = re.compile(rf"(?:\*(?:/[0-9]{{1,4}})?|{VALUE}(?:-{VALUE}(?:/[0-9]{{1,4}})?)?)")
STEP_OF_NUMBER = re.compile(rf"{VALUE}/[0-9]+")
NICKNAMES = {"@hourly", "@daily", "@midnight", "@weekly", "@monthly", "@yearly", "@annually"}
UNNAMING = {
    "cd",
    "nice",
    "ionice",
    "flock",
    "env",
    "exec",
    "timeout",
    "test",
    "sudo",
    "sh",
    "bash",
    "python",
    "python3",
}
"""Words that say nothing about what a command does."""
REBOOT = "rota knows no boot of the machine: leave the line in the crontab, or make it a systemd unit"
RANDOM_DELAY = "RANDOM_DELAY moves it by a time that cron draws at its start; give the trigger `jitter 10m` yourself"


class Line(Struct, frozen=True):
    """One entry of a crontab, in parts."""

    number: int
    text: str
    expr: str
    user: str
    command: str
    stdin: str
    env: Mapping[str, str]


def read_crontab(path: Path, tz: str | None, zone_from: str, system: bool) -> Source:
    """Return the rows of a crontab. `tz` is the zone of lines without CRON_TZ, `zone_from` says where it was found."""
    try:
        text = path.read_text(errors="surrogateescape")
    except OSError as error:
        raise InvalidOptions(f"{path}: {error.strerror or error}") from None
    if len(text) > TEXT_LIMIT:
        raise InvalidOptions(f"{path} has more than {TEXT_LIMIT:,} characters; an import reads no more")
    rows = named_apart(_row(line, tz) for line in read_lines(text, system))
    notes = ["cron starts a command whatever happened before, and never again: overlap allow, catch_up skip, lost fail"]
    if any(row.tz == tz and not row.refused for row in rows):
        notes.append(f"lines without CRON_TZ are in {tz} ({zone_from})")
    if any(row.timed.queue for row in rows):
        notes.append("a user's lines go to a queue: run a worker as that user, rota worker --queues cron-USER")
    if "MAILTO" in text:
        notes.append(
            'cron mails what a command prints; rota keeps the end of it with a failed run: app.on("failed", …)'
        )
    stop = "take these lines out of the crontab at that instant: `crontab -e`"
    return Source(
        kind="crontab",
        where=str(path),
        rows=rows,
        notes=notes,
        engine="croniter, outside the nights of clock changes" if croniter_fires("* * * * *", "UTC") else "",
        imports=IMPORTS,
        prelude=PRELUDE,
        stop=stop,
    )


def read_lines(text: str, system: bool) -> Iterator[Line]:
    """Return the entries. An assignment holds for the lines after it."""
    env: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), 1):
        bare = line.strip()
        if not bare or bare.startswith("#"):
            continue
        assigned = ASSIGNMENT.fullmatch(line)
        if assigned:
            name = next(part for part in assigned.groups()[:3] if part is not None)
            env[name] = _unquoted(assigned[4])
            continue
        yield _line(number, bare, dict(env), system)


def _line(number: int, text: str, env: Mapping[str, str], system: bool) -> Line:
    words = text.removeprefix("-").split(None, 1 if text.startswith("@") else 5)
    fields = 1 if text.startswith("@") else 5
    expr, command = " ".join(words[:fields]), "".join(words[fields:])
    user = ""
    if system:
        user, command = [*command.split(None, 1), "", ""][:2]
    command, stdin = _split_input(command.strip())
    return Line(number, text, expr, user, command, stdin, env)


def _split_input(command: str) -> tuple[str, str]:
    r"""Return the command and its standard input: the first `%` ends the command, the others are line ends; `\%` is a
    `%`."""
    parts = [part.replace("\\%", "%") for part in re.split(r"(?<!\\)%", command)]
    given = "\n".join(parts[1:])
    return parts[0], given + "\n" if len(parts) > 1 and not given.endswith("\n") else given


def _unquoted(value: str) -> str:
    return value[1:-1] if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'" else value


def _row(line: Line, machine: str | None) -> Row:
    name = _name(line)
    tz = line.env.get("CRON_TZ") or machine
    env = {key: value for key, value in line.env.items() if key not in ("CRON_TZ", "MAILTO", "RANDOM_DELAY")}
    given = {name: value for name, value in (("stdin", line.stdin), ("user", line.user), ("env", env)) if value}
    queue = f"cron-{line.user}" if line.user else None
    row = Row(
        name=name,
        where=f"line {line.number}",
        says=line.text,
        tz=tz or "UTC",
        task=name,
        timed=Timed(overlap="allow", catch_up="skip", lost="fail", queue=queue),
        body=[f"await shell({literals([line.command], given)})"],
        is_async=True,
        notes=["cron's `-` before the minute only keeps the line out of its log"] if line.text.startswith("-") else [],
    )
    reason = _mistake(line, tz)
    if reason:
        return refuse(row, reason)
    try:
        trigger = Cron(line.expr, tz)
    except ValueError as error:
        return refuse(row, str(error))
    return replace(row, trigger=trigger, engine=croniter_fires(line.expr, row.tz))


def _mistake(line: Line, tz: str | None) -> str:
    """Return why the line cannot be carried over as it is; empty if it can."""
    if line.expr.lower() == "@reboot":
        return REBOOT
    if not line.command:
        return "the line has no command"
    if tz is None:
        return "which zone? this machine names none: give --tz Europe/Paris"
    if line.env.get("RANDOM_DELAY", "0") != "0":
        return RANDOM_DELAY
    if line.expr.startswith("@"):
        return "" if line.expr.lower() in NICKNAMES else f"cron itself does not know {line.expr}"
    for field in line.expr.split():
        for item in field.split(","):
            if STEP_OF_NUMBER.fullmatch(item):
                start, step = item.split("/")
                return (
                    f"crons read {item!r} in two ways: {start} alone, or from {start} on in steps of {step}; "
                    "write the range out"
                )
            if "~" in item:
                return f"{item!r} is drawn at random when cron starts; name the time, or give the trigger jitter"
            if not ITEM.fullmatch(item):
                return f"cron itself refuses {item!r}"
    return ""


def _name(line: Line) -> str:
    """Return a name from the first word of the command that says something: `backup` for /usr/bin/backup.sh."""
    for part in re.split(r"&&|\|\||[;|]", line.command):
        words = [word for word in part.split() if word[0].isalpha() or word[0] in "/.~"]
        words = [word for word in words if "=" not in word]
        while words and words[0] in UNNAMING - {"cd"}:
            words = words[1:]
        if not words or words[0] == "cd":
            continue
        base = words[0].rstrip("/").rpartition("/")[2]
        slug = re.sub(r"[^a-z0-9]+", "-", base.rpartition(".")[0].lower() or base.lower()).strip("-")
        if slug and slug[0].isalpha():
            return slug[:40]
    return f"line-{line.number}"
