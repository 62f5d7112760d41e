"""Overrides: what an operator says of a task in the store, beside what its code says."""

from msgspec import Struct
from msgspec.structs import replace

from rota.domain.policy import Limit, Policy, Rate, Retry

OVERRIDE_ROW = "override "
"""The overrides of a task are stored as the spec of a task of this name and the name of the task. No task can have such
a name, because the name of a task has no space; so no declaration, not even of an earlier version, touches the row."""


class Overrides(Struct, frozen=True, omit_defaults=True):
    """Values that win over those of the code, and over those of a submit; None: as the code says."""

    version: int = 0
    """Grows with every change; 0: there never was an override."""
    enabled: bool | None = None
    """False disables the task. Nothing enables a task that its code disables."""
    limit: Limit | None = None
    rate: Rate | None = None
    retry: Retry | None = None
    """Of the code's retry, the rules that name exceptions still hold."""
    timeout: float | None = None
    note: str | None = None
    by: str | None = None
    at: float = 0.0
    """When they were changed last."""

    def values(self) -> dict[str, object]:
        """Return what is overridden, by name."""
        names = ("enabled", "limit", "rate", "retry", "timeout")
        return {name: value for name in names if (value := getattr(self, name)) is not None}


def policy_under(given: Overrides, policy: Policy) -> Policy:
    """Return the policy of a call that starts now."""
    if given.retry is None and given.timeout is None:
        return policy
    return replace(
        policy,
        retry=policy.retry if given.retry is None else given.retry,
        timeout=policy.timeout if given.timeout is None else given.timeout,
        overridden_retry=given.retry is not None,
    )
