"""Rights: what a caller of the service may do. A role is a named set of rights."""

from collections.abc import Collection
from enum import StrEnum

from msgspec import Struct

from rota.client.fleet import is_inner
from rota.client.operations import OPERATION
from rota.errors import InvalidOptions


class Right(StrEnum):
    READ = "read"
    """Read runs, tasks, schedules, flows, workers and decisions, without arguments, results and tracebacks."""
    PAYLOAD = "read:payload"
    """Read arguments, results and tracebacks too. Secrets stay masked."""
    SUBMIT = "submit"
    OPERATE = "operate"
    """Act on runs, tasks, workers and marks: retry, cancel, pause, resume."""
    SCHEDULE = "schedule"
    """Put, change and remove schedules."""
    WORK = "work"
    """Claim runs and settle them: a pull worker."""
    METRICS = "metrics"
    ADMIN = "admin"
    """Everything."""


ROLES: dict[str, frozenset[Right]] = {
    "viewer": frozenset({Right.READ, Right.METRICS}),
    "submitter": frozenset({Right.READ, Right.SUBMIT}),
    "worker": frozenset({Right.WORK}),
    "operator": frozenset(Right) - {Right.WORK, Right.ADMIN},
    "admin": frozenset(Right),
}


def is_own(task: str) -> bool:
    """Is `task` one of rota's own: operations, sessions, leases, records of undo? Routes with rights of their own make
    their runs. Nobody submits, changes or claims them as if they were work: an operation would act without
    `operate`."""
    return task == OPERATION or is_inner(task)


class Principal(Struct, frozen=True):
    """Who calls, and what the caller may do. Empty `tasks`: the rights hold for all tasks."""

    name: str
    rights: frozenset[Right]
    tasks: tuple[str, ...] = ()
    expires: float | None = None
    """Unix seconds at which the credential ends."""
    queues: tuple[str, ...] = ()
    """The queues from which the caller may claim; empty: all."""
    per_minute: int | None = None
    """The most requests in a minute; None: no limit."""
    namespaces: tuple[str, ...] = ()
    """The namespaces in which the rights hold; empty: in all that the service serves."""

    def enters(self, namespace: str) -> bool:
        return not self.namespaces or namespace in self.namespaces

    def may(self, right: Right, task: str | None = None) -> bool:
        granted = right in self.rights or Right.ADMIN in self.rights
        return granted and (task is None or not self.tasks or task in self.tasks)


def rights_of(role: str | None, rights: Collection[str] = ()) -> frozenset[Right]:
    """Return the rights of a role and those that are listed beside it."""
    if role is not None and role not in ROLES:
        raise InvalidOptions(f"role {role!r}: choose {', '.join(ROLES)}")
    unknown = set(rights) - set(Right)
    if unknown:
        raise InvalidOptions(f"right {min(unknown)!r}: choose from {', '.join(Right)}")
    return (ROLES[role] if role else frozenset[Right]()) | frozenset(Right(right) for right in rights)
