"""The messages between parent and child: length-prefixed msgpack, because arguments and results are JSON already."""

from msgspec import Struct
from msgspec.msgpack import Encoder

from rota.domain.run import Failure, Run
from rota.engine.logs import LogSetup

HEADER = 4
NOTES = ("progress", "checkpoint", "warn", "extend", "log_line")
"""The only methods of the parent's context that a child may call."""

_encoder = Encoder()


class Setup(Struct, tag=True, frozen=True):
    """The first message. `main` says where the parent's `__main__` comes from; it is imported only if needed."""

    argv: list[bytes]
    main: dict[str, str]
    logs: LogSetup | None = None
    """How the parent writes its log, if a command set that up."""


class Call(Struct, tag=True, frozen=True):
    module: str
    name: str
    takes_context: bool
    args: bytes
    run: Run
    period: str | None = None
    """The period of the run, as the app writes it."""
    logs: bool = False
    """Whether the parent wants to hear what the handler logs."""


class Stop(Struct, tag=True, frozen=True):
    """`ctx.stopping` becomes true, an async handler is cancelled."""


class Began(Struct, tag=True, frozen=True):
    """The child has found the function and bound its arguments, and calls it now."""


class Noted(Struct, tag=True, frozen=True):
    """The handler called `method` of its context: the parent calls the same method of its own context."""

    method: str
    args: bytes


class Returned(Struct, tag=True, frozen=True):
    result: bytes | None
    noticed: bool
    """Whether the handler had seen that it should stop."""


class Raised(Struct, tag=True, frozen=True):
    failure: Failure
    kinds: tuple[str, ...]
    verdict: str | None = None
    verdict_args: bytes = b"[]"


class Cancelled(Struct, tag=True, frozen=True):
    """An async handler was cancelled."""


class BadResult(Struct, tag=True, frozen=True):
    message: str


class Unbindable(Struct, tag=True, frozen=True):
    message: str


Answer = Returned | Raised | Cancelled | BadResult | Unbindable
ToParent = Began | Noted | Answer
ToChild = Setup | Call | Stop


def frame(message: ToChild | ToParent) -> bytes:
    encoded = _encoder.encode(message)
    return len(encoded).to_bytes(HEADER, "big") + encoded
