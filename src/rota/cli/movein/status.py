"""`rota import status`: a source and the store, side by side."""

from datetime import UTC, datetime, timedelta

from rota.cli.options.target import Target
from rota.cli.options.times import clock
from rota.cli.render.show import Column, Show
from rota.cli.schedules.find import opened
from rota.movein.fires import DAYS
from rota.movein.plan import Row, Source
from rota.views.movein import status_view
from rota.views.schedules import Facts, facts_of


def show_status(source: Source, target: Target, show: Show) -> None:
    facts, now = target.run(_stored(target, source))
    rows = {row.name: row for row in source.rows}
    upcoming = {name: next_of_source(row, now) for name, row in rows.items()}
    records = [status_view(row, upcoming[name], facts.get(name)) for name, row in rows.items()]

    def at(name: object) -> str:
        fire = upcoming[str(name)]
        return "" if fire is None else clock(fire.timestamp(), now)

    def ours(name: object, field: str) -> str:
        found = facts.get(str(name))
        if found is None:
            return ""
        starts, following = found.schedule.start, found.schedule.next_at
        instant = following if field == "next" else starts if starts is not None and starts > now else None
        return "" if instant is None else clock(instant, now)

    columns = [
        Column("name"),
        Column("source"),
        Column("source_next", lambda r: at(r["name"]), title=f"next of {source.kind}", rank=1),
        Column("rota"),
        Column("next_at", lambda r: ours(r["name"], "next"), title="next of rota", rank=1),
        Column("start", lambda r: ours(r["name"], "start"), title="rota from", rank=2, sparse=True),
        Column("last_at", piped=True),
    ]
    show.records(records, columns, "No schedules in the source.")


async def _stored(target: Target, source: Source) -> tuple[dict[str, Facts], float]:
    async with opened(target) as (stored, client):
        names = {row.name for row in source.rows}
        found = [schedule for schedule in await stored.list() if schedule.id in names]
        now = datetime.now(UTC).timestamp()
        facts = await facts_of(client, found, target.tz(), now, most=1)
        return {each.schedule.id: each for each in facts}, now


def next_of_source(row: Row, now: float) -> datetime | None:
    """Return when the source fires next; None if the row is paused, refused or at its end."""
    if row.trigger is None or row.paused:
        return None
    start = datetime.fromtimestamp(now, UTC)
    if row.model is None:
        return row.trigger.next_after(start)
    return next(iter(row.model(start, start + timedelta(days=DAYS))), None)
