"""Values as the scripts store them: MessagePack, with False instead of None.

A Lua table cannot hold nil between other values, so None is stored as False. Lua keeps MessagePack's texts and numbers
apart and exact. Values that no script reads are JSON, which Lua has as a text.
"""

from typing import Any

import msgspec
from msgspec import Raw

from rota.errors import Unstorable

_pack = msgspec.msgpack.Encoder().encode
to_json = msgspec.json.Encoder().encode

Text = str | bool
Instant = float | bool


def pack(value: Any) -> bytes:
    try:
        return _pack(value)
    except (UnicodeEncodeError, OverflowError) as error:
        raise Unstorable(f"Redis cannot store this value: {error}") from error


def text_or_none(value: Text) -> str | None:
    return value if isinstance(value, str) else None


def bytes_or_none(value: Text) -> bytes | None:
    return value.encode() if isinstance(value, str) else None


def instant_or_none(value: Instant) -> float | None:
    return None if value is False else float(value)


def or_false(value: str | None) -> Text:
    return False if value is None else value


def opaque(value: bytes) -> Raw:
    """`value` as a MessagePack text, although it may be no UTF-8: the library of the scripts knows no binary type."""
    size = len(value)
    if size < 32:
        return Raw(bytes((0xA0 | size,)) + value)
    if size < 65536:
        return Raw(b"\xda" + size.to_bytes(2, "big") + value)
    return Raw(b"\xdb" + size.to_bytes(4, "big") + value)


def json_text(value: object | None) -> str | None:
    return None if value is None else to_json(value).decode()
