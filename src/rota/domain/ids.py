"""Ids: UUIDv7 for what is new, digests for what derives from something else."""

import hashlib


def uuid7(milliseconds: int, entropy: bytes) -> str:
    """A time-ordered id from a host's milliseconds and ten random bytes."""
    value = (milliseconds & (2**48 - 1)) << 80 | int.from_bytes(entropy[:10], "big")
    value = value & ~(0xF << 76) | 0x7 << 76
    value = value & ~(0x3 << 62) | 0x2 << 62
    text = f"{value:032x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def derived(*parts: str) -> str:
    """The same parts make the same id, whoever computes it: so a repeated put changes nothing."""
    text = "\x00".join(part.replace("\\", "\\\\").replace("\x00", "\\0") for part in parts)
    found = hashlib.sha256(text.encode()).hexdigest()
    variant = "89ab"[int(found[16], 16) & 3]
    return f"{found[:8]}-{found[8:12]}-5{found[13:16]}-{variant}{found[17:20]}-{found[20:32]}"


def retry_id(run: str) -> str:
    return derived("retry", run)
