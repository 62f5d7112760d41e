"""`rota settings`: what holds here, and who said it."""

from typing import Annotated

from cyclopts import Parameter
from rich.text import Text

from rota.cli.apps import Target
from rota.cli.groups import Flag, Shared
from rota.cli.show import Column, Record, Show
from rota.settings import Settings, load
from rota.settings.reference import effective, page

COLUMNS = [
    Column("setting"),
    Column("value", lambda r: _value(r), lambda r: r["value"]),
    Column("source", lambda r: _source(r), elastic=True),
    Column("meaning", elastic=True, rank=1),
]


def show_settings(
    *,
    reference: Annotated[bool, Flag, Parameter(help="The page about all settings, in Markdown.")] = False,
    target: Shared[Target],
    show: Shared[Show],
) -> None:
    """Show each setting, its value, and where the value comes from: code, a variable, a line of a file, the default.

    With an app, as its code has them; secrets are masked.
    """
    if reference:
        show.line(page().rstrip())
        return
    records: list[dict[str, object]] = []
    for row in effective(_settings(target)):
        source = "--url" if row.name == "url" and target.url is not None else row.source
        records.append({"setting": row.name, "value": row.value, "source": source, "meaning": row.meaning or None})
    show.records(records, COLUMNS)


def _settings(target: Target) -> Settings:
    if target.reference is not None:
        return target.app().settings if target.url is None else load(url=target.url)
    return load(url=target.url)


def _value(record: Record) -> Text:
    value = record["value"]
    if value is None:
        return Text("none", style="dim")
    return Text(
        str(value).lower() if isinstance(value, bool) else f"{value:g}" if isinstance(value, float) else str(value)
    )


def _source(record: Record) -> Text:
    source = str(record["source"])
    return Text(source, style="dim" if source == "default" else "")
