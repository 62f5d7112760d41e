"""Imports what `module:attribute` names, such as the scheduler of an app or the settings of a Django project."""

import importlib

from rota.cli.options.target import make_importable
from rota.errors import InvalidOptions


def load_object(reference: str) -> object:
    """Return the attribute, or the module if the reference names no attribute."""
    name, _, attribute = reference.partition(":")
    if not all(part.isidentifier() for part in name.split(".")):
        raise InvalidOptions(f"{reference!r} names no module; write module:attribute, such as shop.jobs:scheduler")
    make_importable()
    try:
        found: object = importlib.import_module(name)
    except (Exception, SystemExit) as error:
        raise InvalidOptions(f"{reference!r} cannot be imported: {type(error).__name__}: {error}") from error
    for part in attribute.split(".") if attribute else ():
        if not hasattr(found, part):
            raise InvalidOptions(f"{reference!r}: there is no {part} in {name}")
        found = getattr(found, part)
    return found
