"""Authors: on whose behalf this code changes something. A client adds an audit entry to each change of an author."""

import os
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

from msgspec import Struct

from rota.domain.ids import uuid7
from rota.store import SUBJECTS_KEPT, AuditEntry

_author: ContextVar["Author | None"] = ContextVar("rota_author", default=None)


class Author(Struct):
    """A person who asks for changes, through the command line or over HTTP."""

    by: str
    via: str = "code"
    note: str | None = None
    request: str | None = None
    address: str | None = None
    entries: int = 0
    """How many entries were made for this author."""
    last: str | None = None
    """The id of the last of them."""

    def entry(
        self,
        action: str,
        subjects: Sequence[str],
        note: str | None = None,
        by: str | None = None,
        changed: int = 0,
        result: str = "done",
    ) -> AuditEntry:
        self.entries += 1
        self.last = uuid7(time.time_ns() // 1_000_000, os.urandom(10))
        return AuditEntry(
            id=self.last,
            by=by or self.by,
            via=self.via,
            action=action,
            subjects=tuple(subjects[:SUBJECTS_KEPT]),
            count=len(subjects),
            note=note or self.note,
            request=self.request,
            address=self.address,
            result=result,
            changed=changed,
        )


@contextmanager
def acting(author: Author) -> Generator[Author]:
    """Change what the block changes on behalf of `author`."""
    token = _author.set(author)
    try:
        yield author
    finally:
        _author.reset(token)


def current_author() -> Author | None:
    return _author.get()
