"""Cursors: where a page of a list ended, together with the filter of that list."""

import hashlib

import msgspec
from msgspec import Struct

from rota.web.problems import Flaw, Problem

_OTHER = ("limit", "cursor")


def sealed(cursor: str | None, query: Struct) -> str | None:
    """Return the cursor for a caller: it also says for which filter it is."""
    return None if cursor is None else f"{cursor}~{_mark(query)}"


def opened(query: Struct) -> str | None:
    """Return the store's own cursor of a request. A cursor of a list with another filter is a 400: the page would not
    be the next one of any list."""
    given: str | None = getattr(query, "cursor")  # noqa: B009 - every query with a cursor has the field
    if given is None:
        return None
    cursor, _, mark = given.rpartition("~")
    if not cursor:
        raise Problem(422, "the cursor is not one of this service", errors=[Flaw("?cursor", "send `next` of a page")])
    if mark != _mark(query):
        words = "the cursor belongs to a list with another filter: send the same filter, or no cursor"
        raise Problem(400, words, errors=[Flaw("?cursor", words)])
    return cursor


def _mark(query: Struct) -> str:
    """What the filter says, and not what it could say: another version of the service may know more fields."""
    blank = {field.name: field.default for field in msgspec.structs.fields(query)}
    given = msgspec.structs.asdict(query).items()
    fields = {name: value for name, value in given if name not in _OTHER and value != blank[name]}
    return hashlib.sha256(msgspec.json.encode(fields, order="sorted")).hexdigest()[:8]
