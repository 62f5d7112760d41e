"""How a difference looks: a line per change, and a line per field that differs."""

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from rota.cli.options.times import clock
from rota.cli.render.show import to_json
from rota.cli.render.text import one_line, plural
from rota.cli.schedules.view import owner_words
from rota.domain.difference import Change, Field, Owed
from rota.views.forecast import Inventory
from rota.views.values import plain_value

SIGN = {"added": "+", "changed": "~", "moved": "~", "undeclared": "-", "taken": "!"}
STYLE = {"added": "green", "changed": "yellow", "moved": "yellow", "undeclared": "red", "taken": "bold red"}
WORDS = {
    "added": "",
    "changed": "",
    "moved": "its zone has changed",
    "undeclared": "no longer in the code; rota sync --prune deletes it",
    "taken": "this app's does not run: the one in the store was",
}


def change_page(
    changes: Sequence[Change], owed: Sequence[Owed], inventory: Inventory, done: bool = False
) -> RenderableType:
    """Return the changes that a start would make; with `done`, those that were made."""
    parts: list[RenderableType] = []
    for change in changes:
        parts += _lines(change, inventory, _words(change, inventory, done))
    if not changes:
        parts.append(Text("No changes: the store is as the code says.", style="green"))
    if owed:
        parts += [Text(), Text("A start would make up at once", style="bold")]
        parts += [Text(f"  {one_line(each.schedule)}: {_owed_words(each)}") for each in owed]
    return Group(*parts)


def _words(change: Change, inventory: Inventory, done: bool) -> str:
    if change.kind == "taken":
        return f"{WORDS['taken']} {owner_words(inventory.stored[change.id])}"
    return "deleted" if done and change.kind == "undeclared" else WORDS[change.kind]


def _lines(change: Change, inventory: Inventory, words: str) -> list[Text]:
    head = Text.assemble((f"{SIGN[change.kind]} {change.of} {one_line(change.id)}", STYLE[change.kind]))
    if words:
        head.append(f"  {words}", style="dim")
    if change.kind == "taken":
        return [head]
    lines = [head, *(_field_line(field) for field in change.fields)]
    return lines + (_next_lines(change, inventory) if change.of == "schedule" else [])


def _field_line(field: Field) -> Text:
    before, after = (_short(plain_value(field.name, value)) for value in (field.before, field.after))
    return Text.assemble((f"    {field.name}  ", "dim"), (before, "red"), " → ", (after, "green"))


def _next_lines(change: Change, inventory: Inventory) -> list[Text]:
    """Return how the next tick moves; an added schedule has only a new one, an undeclared schedule only an old one."""
    before, after = _at(change.next_before, inventory), _at(change.next_after, inventory)
    match change.kind:
        case "added":
            return [Text.assemble(("    next  ", "dim"), after)]
        case "undeclared":
            return [Text.assemble(("    next  ", "dim"), before)]
        case _ if change.next_before != change.next_after:
            return [Text.assemble(("    next  ", "dim"), (before, "red"), " → ", (after, "green"))]
        case _:
            return []


def _at(instant: float | None, inventory: Inventory) -> str:
    return "never" if instant is None else clock(instant, inventory.now)


def _owed_words(owed: Owed) -> str:
    words = plural(owed.runs, "run") if owed.runs else "no run"
    return f"{words}; missed {owed.missed.words}" if owed.missed else words


def _short(value: object) -> str:
    match value:
        case None:
            return "none"
        case str():
            return one_line(value)
        case _:
            return one_line(to_json(value))
