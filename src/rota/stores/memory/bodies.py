"""What the memory store reads of a put: its fields, and the body of the run."""

from typing import Any

from rota.domain import codec
from rota.domain.policy import Policy
from rota.domain.run import NewRun, Origin
from rota.stores.fields import PUT

_STORED = [(field.name, field.get) for field in PUT if field.stored and field.name != "body"]


def stored_of(new: NewRun) -> dict[str, Any]:
    """The fields of a Run that are stored as the put has them."""
    return {name: get(new) for name, get in _STORED}


def fields_of(body: bytes) -> dict[str, Any]:
    """The fields of a Run that its body has."""
    read = codec.decode_or_blank(body)
    return {
        "args": bytes(read.args),
        "origin": read.origin or Origin(),
        "policy": read.policy or Policy(),
        "member": read.member,
        "body": body,
        "headers": read.headers or {},
        "on_end": read.on_end,
        "unique_in": read.unique_in,
    }
