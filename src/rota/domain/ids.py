"""Ids: UUIDv7 for what is new, digests for what derives from something else."""

import hashlib


def uuid7(milliseconds: int, entropy: bytes) -> str:
    """A time-ordered id from a host's milliseconds and ten random bytes."""
    time, chance = f"{milliseconds & (2**48 - 1):012x}", entropy.hex()
    variant = "89ab"[entropy[2] >> 4 & 3]
    return f"{time[:8]}-{time[8:]}-7{chance[1:4]}-{variant}{chance[5:8]}-{chance[8:20]}"


def derived(*parts: str) -> str:
    """The same parts make the same id, whoever computes it: so a repeated put changes nothing."""
    text = "\x00".join(part.replace("\\", "\\\\").replace("\x00", "\\0") for part in parts)
    found = hashlib.sha256(text.encode()).hexdigest()
    variant = "89ab"[int(found[16], 16) & 3]
    return f"{found[:8]}-{found[8:12]}-5{found[13:16]}-{variant}{found[17:20]}-{found[20:32]}"


def retry_id(run: str) -> str:
    return derived("retry", run)
