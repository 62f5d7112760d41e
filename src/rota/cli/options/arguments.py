"""Arguments from a command line: `name=value` pairs and `--args` JSON, by the task's own annotations."""

import inspect
import sys
import types
import typing
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePath
from typing import Annotated, Any

import msgspec
from cyclopts import Parameter

from rota.domain.arguments import type_hints
from rota.domain.text import did_you_mean
from rota.errors import InvalidArguments
from rota.task import Task, definition_of

Hints = Mapping[str, Any]
Document = Annotated[
    str | None, Parameter(allow_leading_hyphen=True, help="All arguments: JSON, @file, or - for standard input.")
]


class Given(msgspec.Struct, frozen=True):
    """The arguments of a call, by position and by name."""

    positional: list[object]
    named: dict[str, object]


def gather_for(task: Task[..., ..., Any, Any], pairs: Sequence[str], document: str | None) -> Given:
    """Read the arguments for `task`; refuse names that the task does not take."""
    given = gather(pairs, document, type_hints(task.fn))
    parameters = definition_of(task).signature.parameters.parameters
    if any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters.values()):
        return given
    for name in given.named:
        if name not in parameters:
            known = f"; it takes {', '.join(parameters) or 'none'}"
            raise InvalidArguments(f"{task.name} has no argument {name!r}{did_you_mean(name, parameters, known)}")
    return given


def gather(pairs: Sequence[str], document: str | None, hints: Hints) -> Given:
    """Read the arguments of `pairs` and of `document`; refuse a name that is given twice."""
    given = _document(document)
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not equals or not name:
            raise InvalidArguments(f"{pair!r}: write arguments as name=value")
        if name in given.named:
            raise InvalidArguments(f"argument {name!r} is given twice")
        given.named[name] = _value(text, hints.get(name, Any))
    return given


def _value(text: str, hint: Any) -> object:
    """Return `text` read as JSON, if it is JSON and the parameter does not take text."""
    if takes_text(hint, text):
        return text
    try:
        return msgspec.json.decode(text)
    except ValueError:
        return text


def takes_text(hint: Any, text: str) -> bool:
    """Return whether `5` is the text "5" for this annotation. If the annotation allows None, `null` is None."""
    origin = typing.get_origin(hint)
    if origin is Annotated:
        return takes_text(typing.get_args(hint)[0], text)
    if origin in (typing.Union, types.UnionType):
        members = [member for member in typing.get_args(hint) if member is not type(None)]
        return text != "null" and all(takes_text(member, text) for member in members)
    return isinstance(hint, type) and issubclass(hint, str | PurePath)


def _document(source: str | None) -> Given:
    if source is None:
        return Given([], {})
    try:
        found: object = msgspec.json.decode(_read(source))
    except OSError as error:
        raise InvalidArguments(f"--args {source}: {error.strerror}") from None
    except ValueError as error:
        raise InvalidArguments(f"--args is not JSON: {error}") from None
    match found:
        case dict():
            return Given([], typing.cast("dict[str, object]", found))
        case list():
            return Given(typing.cast("list[object]", found), {})
        case _:
            raise InvalidArguments("--args takes a JSON object by parameter name, or an array by position")


def _read(source: str) -> bytes:
    if source == "-":
        return sys.stdin.buffer.read()
    return Path(source[1:]).read_bytes() if source.startswith("@") else source.encode(errors="surrogateescape")
