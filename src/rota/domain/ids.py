"""Ids: a UUIDv7 for a new run, a digest for an id that derives from other ids, and ids that a submit gives itself."""

import hashlib
import re
from functools import lru_cache

import msgspec

OWN_ID_LIMIT = 63
_GENERATED = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[57][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")


def uuid7(milliseconds: int, entropy: bytes) -> str:
    """Return a UUIDv7 from Unix milliseconds and ten random bytes. Ids sort by time."""
    chance = entropy.hex()
    variant = "89ab"[entropy[2] >> 4 & 3]
    return f"{_time(milliseconds)}{chance[1:4]}-{variant}{chance[5:8]}-{chance[8:20]}"


def uuid7s(milliseconds: int, entropy: bytes) -> list[str]:
    """Return a UUIDv7 for every ten bytes of `entropy`, all of the same time: as `uuid7`, for a batch."""
    head, text = _time(milliseconds), entropy.hex()
    chances = [text[at : at + 20] for at in range(0, len(text), 20)]
    return [f"{head}{one[1:4]}-{_VARIANT[one[4]]}{one[5:8]}-{one[8:]}" for one in chances]


_VARIANT = {digit: "89ab"[int(digit, 16) & 3] for digit in "0123456789abcdef"}


@lru_cache(16)
def _time(milliseconds: int) -> str:
    """The first part of a UUIDv7: a batch makes hundreds of ids in one millisecond."""
    text = f"{milliseconds & (2**48 - 1):012x}"
    return f"{text[:8]}-{text[8:]}-7"


def derived(*parts: str) -> str:
    """Return an id made of `parts`. Every process computes the same id, so a repeated put changes nothing."""
    text = "\x00".join(part.replace("\\", "\\\\").replace("\x00", "\\0") for part in parts)
    found = hashlib.sha256(text.encode()).hexdigest()
    variant = "89ab"[int(found[16], 16) & 3]
    return f"{found[:8]}-{found[8:12]}-5{found[13:16]}-{variant}{found[17:20]}-{found[20:32]}"


def check_own_id(id: object) -> str:
    """Return the id that a submit gives to its run, if every store can keep it; else raise ValueError."""
    if not isinstance(id, str) or not 0 < len(id) <= OWN_ID_LIMIT or not id.isprintable() or " " in id:
        raise ValueError(f"id={id!r}: 1 to {OWN_ID_LIMIT} printable characters without spaces")
    if is_generated(id.partition(".")[0]) and "." in id:
        raise ValueError(f"id={id!r}: rota gives ids of this form to the runs of a fan-out; choose another one")
    return id


def is_generated(id: str) -> bool:
    """Return whether `id` has the form of the ids that rota makes."""
    return _GENERATED.fullmatch(id) is not None


def fingerprint(task: str, args: bytes) -> str:
    """Return a digest of a task and its arguments, by which a store knows a repeated submit of the same id."""
    same = msgspec.json.encode(msgspec.json.decode(args), order="sorted")
    return hashlib.sha256(task.encode() + b"\x00" + same).hexdigest()[:32]


def retry_id(run: str) -> str:
    return derived("retry", run)
