"""What the memory store reads of the body of a run."""

from typing import Any

from rota.domain import codec
from rota.domain.policy import Policy
from rota.domain.run import Origin


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
    }
