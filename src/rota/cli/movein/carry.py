"""From a source to the plan on the screen, the file and the store."""

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

from msgspec.structs import replace

from rota.cli.movein.apply import put_rows
from rota.cli.movein.view import COLUMNS, plan_page
from rota.cli.options.target import Target
from rota.cli.options.times import read_instant
from rota.cli.render.show import Show
from rota.cli.render.text import plural
from rota.errors import InvalidOptions
from rota.movein.code import later, write_code
from rota.movein.fires import Proof, prove, torn
from rota.movein.plan import Source
from rota.views.movein import plan_view, row_view
from rota.views.values import Record

DIFFERS = 3
"""The exit code if a time differs that no rule explains."""
NAMED = 5
"""Rows that a message names."""


def carry_out(
    source: Source, to: Path | None, apply: bool, at: str | None, unknown_ok: bool, target: Target, show: Show
) -> int:
    """Prove the plan, write what was asked for, and show it all."""
    now = datetime.now(UTC)
    cut = None if at is None else read_instant(at, "--at", ZoneInfo(_zone(source, target)))
    _check_cut(source, cut, now)
    if to is not None and to.exists():
        raise InvalidOptions(f"--to {to}: the file exists; name a new one, or remove it")
    proofs = [proof for row in source.rows if (proof := prove(row, now)) is not None]
    unnamed = [proof for proof in proofs if proof.unnamed]
    applied: Sequence[Record] = ()
    if not unnamed:
        applied = _written(source, to, apply, cut, unknown_ok, target)
    _show(show, source, proofs, cut, applied)
    if unnamed:
        names = ", ".join(proof.name for proof in unnamed[:NAMED])
        show.note(f"rota: {names}: fires differ, and no rule says why; nothing was written. Please report it")
        return DIFFERS
    if to is not None:
        show.note(f"wrote {to}" + ("" if apply else "; `rota sync` or a start puts its schedules into the store"))
    if applied:
        show.note(f"put {plural(len(applied), 'schedule')} into the store")
    if cut is not None and source.stop and (to is not None or apply):
        show.note(f"the source still fires before {_iso(cut)}: {source.stop}")
    return 0


def _written(
    source: Source, to: Path | None, apply: bool, cut: datetime | None, unknown_ok: bool, target: Target
) -> Sequence[Record]:
    applied: Sequence[Record] = ()
    if apply:
        rows = [
            replace(row, timed=replace(row.timed, start=later(row.timed.start, cut)))
            for row in source.rows
            if not row.refused
        ]
        if to is not None:  # the file has a task for each row
            rows = [replace(row, task=row.name, args=(), kwargs={}) for row in rows]
        app = target.app() if target.reference is not None else None
        applied = target.run(put_rows(target, app, rows, cut, unknown_ok or to is not None))
    if to is not None:
        try:
            with to.open("x", encoding="utf-8") as file:
                file.write(write_code(source, cut, scheduled=not apply))
        except OSError as error:
            raise InvalidOptions(f"--to {to}: {error.strerror or error}") from None
    return applied


def _check_cut(source: Source, cut: datetime | None, now: datetime) -> None:
    """Refuse a cut-over at which a fire would be missed or doubled."""
    if cut is None:
        return
    if cut <= now:
        raise InvalidOptions(f"--at {_iso(cut)} has passed: rota would miss the ticks since then; name a later instant")
    reasons = [reason for row in source.rows if (reason := torn(row, cut))]
    if reasons:
        raise InvalidOptions(f"--at {_iso(cut)} is in the night of a clock change: {'; '.join(reasons[:NAMED])}")


def _zone(source: Source, target: Target) -> str:
    """Return the zone of an `--at` that names none: that of the rows if it is one, else the app's."""
    zones = {row.tz for row in source.rows if not row.refused}
    return zones.pop() if len(zones) == 1 else target.configured_tz() or "UTC"


def _show(show: Show, source: Source, proofs: Sequence[Proof], cut: datetime | None, applied: Sequence[Record]) -> None:
    if show.json:
        show.value(plan_view(source, proofs, None if cut is None else cut.timestamp(), applied))
        return
    show.records([row_view(row) for row in source.rows], COLUMNS, render=lambda: plan_page(source, proofs, cut))


def _iso(instant: datetime) -> str:
    return instant.isoformat().replace("+00:00", "Z")
