"""From a source to the plan on the screen, the file and the store."""

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

from msgspec import Struct
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
from rota.movein.plan import Row, Source
from rota.views.movein import plan_view, row_view
from rota.views.values import Record

DIFFERS = 3
"""The exit code if a time differs that no rule explains."""
NAMED = 5
"""Rows that a message names."""


class Carry(Struct, frozen=True):
    """What was asked for: the options of one import."""

    to: Path | None = None
    apply: bool = False
    at: str | None = None
    unknown_ok: bool = False
    disable_source: bool = False


def carry_out(source: Source, carry: Carry, target: Target, show: Show) -> int:
    """Prove the plan, write what was asked for, and show it all."""
    now, to = datetime.now(UTC), carry.to
    cut = None if carry.at is None else read_instant(carry.at, "--at", ZoneInfo(_zone(source, target)))
    _check_cut(source, cut, now)
    if carry.disable_source and (cut is None or not carry.apply):
        raise InvalidOptions(
            "--disable-source stops the source where rota takes over: say --apply and --at INSTANT too"
        )
    if to is not None and to.exists():
        raise InvalidOptions(f"--to {to}: the file exists; name a new one, or remove it")
    proofs = [proof for row in source.rows if (proof := prove(row, now)) is not None]
    unnamed = [proof for proof in proofs if proof.unnamed]
    applied: Sequence[Record] = ()
    if not unnamed:
        applied = _written(source, carry, cut, target)
    _show(show, source, proofs, cut, applied)
    if unnamed:
        names = ", ".join(proof.name for proof in unnamed[:NAMED])
        show.note(f"rota: {names}: fires differ, and no rule says why; nothing was written. Please report it")
        return DIFFERS
    if to is not None:
        show.note(f"wrote {to}" + ("" if carry.apply else "; `rota sync` or a start puts its schedules into the store"))
    if applied:
        show.note(f"put {plural(len(applied), 'schedule')} into the store")
    if cut is not None and (to is not None or carry.apply):
        _end_source(source, cut, carry.disable_source, show)
    return 0


def _end_source(source: Source, cut: datetime, disable: bool, show: Show) -> None:
    """Stop the source at the cut-over, behind the put: an import that ends in between is done by the same command
    again, as long as the cut-over lies ahead."""
    if source.stop_at is None or not disable:
        if source.stop:
            show.note(f"the source fires before {_iso(cut)}, and has to stop then: {source.stop}")
        return
    try:
        notes = source.stop_at(cut)
    except InvalidOptions as error:
        raise InvalidOptions(f"the source was not stopped, and both would fire from {_iso(cut)} on: {error}") from None
    show.note(f"the source fires nothing from {_iso(cut)} on")
    for each in notes:
        show.note(f"note: {each}")


def _written(source: Source, carry: Carry, cut: datetime | None, target: Target) -> Sequence[Record]:
    applied: Sequence[Record] = ()
    to = carry.to
    if carry.apply:
        rows = [
            replace(row, timed=replace(row.timed, start=later(row.timed.start, cut)))
            for row in source.rows
            if not row.refused and not _is_over(row, cut)
        ]
        if to is not None:  # the file has a task for each row
            rows = [replace(row, task=row.name, args=(), kwargs={}) for row in rows]
        app = target.app() if target.reference is not None else None
        applied = target.run(put_rows(target, app, rows, cut, carry.unknown_ok or to is not None))
    if to is not None:
        try:
            with to.open("x", encoding="utf-8") as file:
                file.write(write_code(source, cut, scheduled=not carry.apply))
        except OSError as error:
            raise InvalidOptions(f"--to {to}: {error.strerror or error}") from None
    return applied


def _is_over(row: Row, cut: datetime | None) -> bool:
    """Return whether the source ends the row before the cut-over. An import that has stopped the source there finds its
    rows so when it is repeated: their schedules are in the store already, and stay as they are."""
    return cut is not None and row.timed.end is not None and row.timed.end < cut


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
