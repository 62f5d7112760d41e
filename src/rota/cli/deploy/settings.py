"""`rota settings`: each setting, its value and its source."""

from typing import Annotated

from cyclopts import Parameter
from rich.text import Text

from rota.cli.options.parameters import Flag, Shared
from rota.cli.options.target import Target
from rota.cli.render.show import Column, Record, Show
from rota.errors import RotaError
from rota.settings import Settings, load, unknown_overrides
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
    settings = _settings(target)
    unknown = _unknown(target, settings)
    records: list[dict[str, object]] = []
    for row in effective(settings):
        source = "--url" if row.name == "url" and target.url is not None else row.source
        useless = [words for task, words in unknown.items() if row.name.startswith(f"tasks.{task}.")]
        meaning = f"It changes nothing: {useless[0]}" if useless else row.meaning or None
        records.append({"setting": row.name, "value": row.value, "source": source, "meaning": meaning})
    show.records(records, COLUMNS)
    for words in unknown.values():
        show.note(words)


def _settings(target: Target) -> Settings:
    if target.reference is not None:
        return target.app().settings if target.url is None else load(url=target.url)
    return load(url=target.url)


def _unknown(target: Target, settings: Settings) -> dict[str, str]:
    """Overrides of tasks that the app does not have. With --url, an app that cannot be imported is ignored."""
    try:
        return {} if target.reference is None else unknown_overrides(settings, target.app().tasks)
    except RotaError:
        return {}


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
