"""The body of a run: versioned JSON. A reader ignores fields that it does not know. A worker never changes a body; a
join replaces it whole."""

import msgspec
from msgspec import Raw, Struct

from rota.domain.policy import Policy
from rota.domain.run import Callback, Member, Origin

VERSION = 1
ARGS_LIMIT = 256 * 1024
RESULT_LIMIT = 1024 * 1024


class Body(Struct, frozen=True, omit_defaults=True):
    """The part of a run that its submitter writes."""

    v: int
    args: Raw
    origin: Origin | None = None
    policy: Policy | None = None
    member: Member | None = None
    headers: dict[str, str] | None = None
    on_end: tuple[Callback, ...] = ()
    unique_in: str | None = None
    secrets: tuple[str, ...] = ()
    """Names of arguments and fields that people do not get to see (`domain.secrets`)."""


_ORIGIN, _POLICY = Origin(), Policy()
_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(Body)


def encode(
    args: bytes, origin: Origin, policy: Policy, member: Member | None = None, headers: dict[str, str] | None = None
) -> bytes:
    """Return the body of a run. Defaults are left out: most bodies have arguments and nothing else."""
    if origin == _ORIGIN and policy == _POLICY and member is None and not headers:
        return b'{"v":%d,"args":%b}' % (VERSION, args)
    return _encoder.encode(
        Body(
            VERSION,
            Raw(args),
            None if origin == _ORIGIN else origin,
            None if policy == _POLICY else policy,
            member,
            headers or None,
        )
    )


def around_args(encoded: bytes, args: bytes) -> tuple[bytes, bytes] | None:
    """Return what a body that `encode` has made has in front of its arguments and behind them, for bodies that differ
    in nothing else."""
    before = b'{"v":%d,"args":' % VERSION
    return (before, encoded[len(before) + len(args) :]) if encoded.startswith(before + args) else None


def decode(encoded: bytes | str) -> Body:
    """Read a body. Raise ValueError if it is no body, or one of a newer version."""
    body = _decoder.decode(encoded)
    if body.v > VERSION:
        raise ValueError(f"this run was written in body version {body.v}; this rota reads up to {VERSION}")
    return body


def has_args_only(body: Body) -> bool:
    """Return whether a body has nothing but arguments that a run is called with."""
    plain = body.origin is None and body.policy is None and body.member is None and body.headers is None
    return plain and not body.on_end and body.unique_in is None


def amend(encoded: bytes, origin: Origin, member: Member | None = None) -> bytes:
    """Return the body with another origin and, if given, another member. Fields of a newer version are kept."""
    fields = msgspec.json.decode(encoded, type=dict[str, Raw])
    fields["origin"] = Raw(_encoder.encode(origin))
    if member is not None:
        fields["member"] = Raw(_encoder.encode(member))
    return _encoder.encode(fields)


def with_args(encoded: bytes, args: bytes) -> bytes:
    """Return the body with other arguments. Fields of a newer version are kept."""
    fields = msgspec.json.decode(encoded, type=dict[str, Raw])
    fields["args"] = Raw(args)
    return _encoder.encode(fields)


def with_policy(encoded: bytes, policy: Policy) -> bytes:
    """Return the body with another policy. Fields of a newer version are kept."""
    if policy == _POLICY and b'"policy":' not in encoded:
        return encoded
    fields = msgspec.json.decode(encoded, type=dict[str, Raw])
    fields["policy"] = Raw(_encoder.encode(policy))
    return _encoder.encode(fields)


def with_headers(encoded: bytes, headers: dict[str, str]) -> bytes:
    """Return the body with other headers. Fields of a newer version are kept."""
    fields = msgspec.json.decode(encoded, type=dict[str, Raw])
    fields["headers"] = Raw(_encoder.encode(headers))
    return _encoder.encode(fields)


def with_on_end(encoded: bytes, on_end: tuple[Callback, ...]) -> bytes:
    """Return the body with callbacks. Fields of a newer version are kept."""
    fields = msgspec.json.decode(encoded, type=dict[str, Raw])
    fields["on_end"] = Raw(_encoder.encode(on_end))
    return _encoder.encode(fields)


def with_unique_in(encoded: bytes, name: str) -> bytes:
    """Return the body with the name under which the task of the run shares its unique keys. Fields of a newer version
    are kept."""
    fields = msgspec.json.decode(encoded, type=dict[str, Raw])
    fields["unique_in"] = Raw(_encoder.encode(name))
    return _encoder.encode(fields)


def with_secrets(encoded: bytes, names: tuple[str, ...]) -> bytes:
    """Return the body with the names of its secrets. Fields of a newer version are kept."""
    fields = msgspec.json.decode(encoded, type=dict[str, Raw])
    fields["secrets"] = Raw(_encoder.encode(names))
    return _encoder.encode(fields)


def decode_or_blank(encoded: bytes | str) -> Body:
    """Read a body, or return a blank one if it cannot be read.

    For reading many runs at once: an unreadable body makes only its own run fail, when its arguments are bound.
    """
    try:
        return decode(encoded)
    except ValueError:
        return Body(0, Raw(b""))
