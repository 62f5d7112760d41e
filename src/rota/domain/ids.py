"""Ids: a UUIDv7 for a new run, a digest for an id that derives from other ids."""

import hashlib


def uuid7(milliseconds: int, entropy: bytes) -> str:
    """Return a UUIDv7 from Unix milliseconds and ten random bytes. Ids sort by time."""
    time, chance = f"{milliseconds & (2**48 - 1):012x}", entropy.hex()
    variant = "89ab"[entropy[2] >> 4 & 3]
    return f"{time[:8]}-{time[8:]}-7{chance[1:4]}-{variant}{chance[5:8]}-{chance[8:20]}"


def derived(*parts: str) -> str:
    """Return an id made of `parts`. Every process computes the same id, so a repeated put changes nothing."""
    text = "\x00".join(part.replace("\\", "\\\\").replace("\x00", "\\0") for part in parts)
    found = hashlib.sha256(text.encode()).hexdigest()
    variant = "89ab"[int(found[16], 16) & 3]
    return f"{found[:8]}-{found[8:12]}-5{found[13:16]}-{variant}{found[17:20]}-{found[20:32]}"


def retry_id(run: str) -> str:
    return derived("retry", run)
