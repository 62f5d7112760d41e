"""Audit: what people asked for, as the stores keep it. An entry is written once and never changed."""

from msgspec import Struct

AUDIT_KEPT = 10_000
"""The most entries that a store keeps; the oldest go first."""
SUBJECTS_KEPT = 20
"""The most names of an entry; `count` counts all of them."""


class AuditEntry(Struct, frozen=True, kw_only=True):
    """One change that a person asked for. The store fills in `at` and `changed`.

    A verb that is sent again has the same `id`, and makes no second entry.
    """

    id: str
    by: str
    via: str = "code"
    """Through which door: "cli", "http" or "code"."""
    action: str
    """What was asked: the kind of thing and the verb, such as "runs.cancel"."""
    subjects: tuple[str, ...] = ()
    """Names of what it was asked of, SUBJECTS_KEPT at most."""
    count: int = 0
    """How many names there were."""
    note: str | None = None
    request: str | None = None
    """The id of the request over HTTP."""
    address: str | None = None
    """The address from which it came."""
    result: str = "done"
    """"done", or why it was refused."""
    changed: int = 0
    """How many things it changed."""
    due_before: tuple[float, ...] = ()
    """Of a change of due times: the due time of each subject before, and the one that it got."""
    due_after: tuple[float, ...] = ()
    at: float = 0.0
    """When, by the store's clock."""
