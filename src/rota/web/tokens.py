"""Tokens: the credentials of programs. Only the SHA-256 of a token is stored; the token itself is shown once."""

import hashlib
import hmac
import os
import secrets
import time
import tomllib
import zlib
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from rota.errors import InvalidOptions
from rota.web.rights import Principal, rights_of

PREFIX = "rota_"
BYTES = 32
CHECKSUM = 6
SHORTEST = 16
"""Characters that a token from ROTA_TOKEN needs at least."""
LONGEST = 512


def new_token() -> str:
    """Return a token of 256 random bits. It ends with a checksum, so that a scanner recognises a leaked token."""
    body = secrets.token_urlsafe(BYTES)
    return f"{PREFIX}{body}{_checksum(body)}"


def well_formed(token: str) -> bool:
    """Return whether the token is one that `new_token` can have made."""
    body, checksum = token.removeprefix(PREFIX)[:-CHECKSUM], token[-CHECKSUM:]
    return token.startswith(PREFIX) and hmac.compare_digest(_checksum(body), checksum)


def fingerprint(token: str) -> str:
    return hashlib.sha256(token.encode(errors="surrogatepass")).hexdigest()


def _checksum(body: str) -> str:
    return f"{zlib.crc32(body.encode(errors='surrogatepass')):08x}"[-CHECKSUM:]


class Grant(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One table of the token file: `[name]`. A name may have two tokens at once, while one replaces the other."""

    sha256: str | tuple[str, ...] = ()
    """Empty: the name is only for `--auth-header`."""
    role: str | None = None
    rights: tuple[str, ...] = ()
    tasks: tuple[str, ...] = ()
    queues: tuple[str, ...] = ()
    expires: Any = None
    """A date-time of TOML, with its zone."""
    per_minute: Annotated[int, Meta(ge=1)] | None = None
    """The most requests in a minute."""
    namespaces: tuple[str, ...] = ()
    """The namespaces in which the rights hold; empty: in all."""

    @property
    def digests(self) -> list[str]:
        return [digest.lower() for digest in ((self.sha256,) if isinstance(self.sha256, str) else self.sha256)]

    def principal(self, name: str) -> Principal:
        expires = None if self.expires is None else self.expires.timestamp()
        given = rights_of(self.role, self.rights)
        return Principal(name, given, self.tasks, expires, self.queues, self.per_minute, self.namespaces)


class Tokens:
    """The tokens that the service accepts: one of ROTA_TOKEN for an admin, and those of the file ROTA_TOKENS.

    The file is read again when it changes. A file that cannot be read lets nobody in whom it named.
    """

    def __init__(self, admin: str | None = None, file: Path | None = None) -> None:
        if admin is not None and not SHORTEST <= len(admin) <= LONGEST:
            raise InvalidOptions(f"ROTA_TOKEN has {len(admin)} characters: use the token that `rota token new` prints")
        self._admin = {} if admin is None else {fingerprint(admin): Principal("admin", rights_of("admin"))}
        self._file = file
        self._seen: tuple[int, int] | None = None
        self._listed: dict[str, Principal] = {}
        self._names: dict[str, Principal] = {}
        if file is not None:
            self._take(read_grants(file))
            self._seen = _version(file)

    def __bool__(self) -> bool:
        return bool(self._admin or self._file)

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> "Tokens":
        file = environment.get("ROTA_TOKENS")
        return cls(environment.get("ROTA_TOKEN") or None, Path(file) if file else None)

    def find(self, token: str) -> Principal | None:
        """Return whose token it is; None if nobody's, or if it has expired. Takes the same time for every token."""
        return self.of(fingerprint(token[:LONGEST]))

    def of(self, given: str) -> Principal | None:
        """Return whose token has this fingerprint."""
        self._read_again()
        found = None
        for known, principal in (*self._admin.items(), *self._listed.items()):
            if hmac.compare_digest(known, given):
                found = principal
        if found is not None and found.expires is not None and found.expires <= time.time():
            return None
        return found

    def named(self, name: str) -> Principal | None:
        """Return the principal of this name, whom a proxy has let in."""
        self._read_again()
        found = self._names.get(name)
        expired = found is not None and found.expires is not None and found.expires <= time.time()
        return None if expired else found

    def known(self) -> list[tuple[Principal, int]]:
        """Return whom the service lets in by a credential of its own, and with how many tokens; expired ones too."""
        self._read_again()
        counts = Counter(principal.name for principal in self._listed.values())
        listed = [(principal, counts[name]) for name, principal in sorted(self._names.items())]
        return [*((principal, 1) for principal in self._admin.values()), *listed]

    def _read_again(self) -> None:
        if self._file is None or (version := _version(self._file)) == self._seen:
            return
        self._seen = version
        try:
            self._take(read_grants(self._file))
        except InvalidOptions:
            self._take({})

    def _take(self, grants: dict[str, Grant]) -> None:
        self._names = {name: grant.principal(name) for name, grant in grants.items()}
        self._listed = {digest: self._names[name] for name, grant in grants.items() for digest in grant.digests}


def read_grants(file: Path) -> dict[str, Grant]:
    """Return the tables of a token file by name."""
    try:
        with file.open("rb") as opened:
            tables = msgspec.convert(tomllib.load(opened), dict[str, Grant])
        for name, grant in tables.items():
            grant.principal(name)
        return tables
    except (OSError, ValueError, AttributeError) as error:
        raise InvalidOptions(f"the tokens in {file}: {error}") from None


def _version(file: Path) -> tuple[int, int] | None:
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size
