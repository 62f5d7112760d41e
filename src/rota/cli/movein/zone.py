"""The zone of this machine, and where it is written."""

import os
from pathlib import Path

from rota.domain.triggers.zones import zone_name

LOCALTIME = Path("/etc/localtime")
TIMEZONE = Path("/etc/timezone")


def zone_of_machine() -> tuple[str | None, str]:
    """Return the zone in which cron runs on this machine, and where it was found; None if no place names one."""
    for name, place in _named():
        try:
            if name and (zone := zone_name(name)):
                return zone, place
        except ValueError:
            continue
    return None, ""


def _named() -> list[tuple[str, str]]:
    linked = str(LOCALTIME.resolve()).partition("/zoneinfo/")[2] if LOCALTIME.is_symlink() else ""
    try:
        written = TIMEZONE.read_text()[:100].strip()
    except (OSError, UnicodeDecodeError):
        written = ""
    return [(os.environ.get("TZ", "").removeprefix(":"), "TZ"), (linked, str(LOCALTIME)), (written, str(TIMEZONE))]
