"""TaskSpec: what a task's code says of it, published so that every process can see and judge it."""

from typing import Any, Literal

from msgspec import Struct

from rota.domain.activity import Activity
from rota.domain.guards import Guards
from rota.domain.period import Period
from rota.domain.policy import Limit, Policy, Rate
from rota.domain.user_key import UserKey


class TaskSpec(Struct, frozen=True, omit_defaults=True):
    """The last publish wins. `paused` is not the code's to say: it is asked for, and stays until resumed."""

    name: str
    enabled: bool = True
    limit: Limit | None = None
    rate: Rate | None = None
    description: str = ""
    executor: str = ""
    timeout: float | None = None
    retries: int = 0
    paused: bool = False
    parameters: tuple[str, ...] = ()
    defaults: dict[str, Any] = {}
    open: bool = False
    """It takes keyword arguments that its parameters do not name."""
    key: str | UserKey | None = None
    priority: int = 0
    policy: Policy = Policy()
    guards: Guards = Guards()
    activity: Activity | None = None
    once: Period | Literal["code"] | None = None
    """It succeeds once per period; "code": only its code can name one."""
    memory: float = 0.0
    """Seconds beyond the usual for which its marks are read."""

    @property
    def starts_nothing(self) -> bool:
        """No run of this task starts now: the task is paused, or its code disables it."""
        return self.paused or not self.enabled

    @property
    def gated(self) -> bool:
        return self.limit is not None or self.rate is not None
