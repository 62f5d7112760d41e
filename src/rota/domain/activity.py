"""Activity: a task that runs some time after a user was active, and not too often."""

from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from rota.domain.decision import Reason
from rota.domain.guards import Cooldown, Guards
from rota.domain.kinds import Kind, check_struct, optional
from rota.domain.policy import FAR
from rota.domain.user_key import UserKey

Mode = Literal["coalesce", "debounce"]
DAY = 86_400.0


def check_span(value: object, name: str) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= FAR:
        raise ValueError(f"{name}={value!r}: seconds from 0 to ten years")


class Breaker(Struct, frozen=True, omit_defaults=True):
    """After `failures` failed runs of a key in a row, refuse new runs for `cool_down` seconds. A success resets it.

    The default `cool_down` is twice the time in which so many failures can happen, and at least a day.
    """

    failures: int
    cool_down: float | None = None

    def __post_init__(self) -> None:
        check_struct(self)
        if self.failures < 1:
            raise ValueError(f"Breaker({self.failures!r}): a whole number of failed runs, at least 1")
        if self.cool_down is not None:
            check_span(self.cool_down, "cool_down")


PARTS = {
    "breaker": Kind(optional(lambda value: isinstance(value, Breaker)), "write breaker=Breaker(3), or None"),
    "key": Kind(
        optional(lambda value: isinstance(value, str | UserKey)),
        'a template such as key="{user}", a UserKey(), or None for the key of the task',
    ),
}


class Activity(Struct, frozen=True, omit_defaults=True):
    """How `task.touch(...)` makes runs: one per key, `after` seconds from the first touch, with the newest arguments.

    With `mode="debounce"`, every touch moves the run to `after` seconds from that touch, at most `max_wait` from the
    first touch. No touch makes a run within `spacing` seconds (default: `after`) of the end of the last run. A touch
    during a run queues one more run behind it. A cancelled run counts neither for `spacing` nor for the `breaker`.
    With `expires`, a run that has not started `expires` seconds after its due time never starts; a touch that moves
    the due time also moves the expiry.
    """

    after: float
    key: str | UserKey | None = None
    mode: Mode = "coalesce"
    max_wait: float | None = None
    spacing: float | None = None
    breaker: Breaker | None = None
    expires: float | None = None

    def __post_init__(self) -> None:
        check_struct(self, PARTS)
        for name in ("after", "max_wait", "spacing", "expires"):
            if (value := getattr(self, name)) is not None:
                check_span(value, name)
        if self.mode not in ("coalesce", "debounce"):
            raise ValueError(f"Activity(mode={self.mode!r}): choose coalesce or debounce")
        if self.max_wait is not None and self.mode == "coalesce":
            raise ValueError("Activity(max_wait=...) bounds how far touches push a run: it needs mode='debounce'")
        if self.max_wait is not None and self.max_wait < self.after:
            raise ValueError(f"Activity(max_wait={self.max_wait:g}) is shorter than after={self.after:g}")


def touch_guards(activity: Activity, base: Guards) -> Guards:
    """Return the guards of a touch: it joins a queued run; else spacing and then the breaker may refuse it."""
    spacing = activity.after if activity.spacing is None else activity.spacing
    cooldowns = [Cooldown(0, spacing)] if spacing else []
    if (breaker := activity.breaker) is not None:
        usual = max(breaker.failures * activity.after * 2, DAY)
        cool_down = usual if breaker.cool_down is None else breaker.cool_down
        cooldowns.append(Cooldown(breaker.failures, cool_down, Reason.BREAKER))
    join: Literal["keep", "push"] = "push" if activity.mode == "debounce" else "keep"
    return replace(
        base, unique="queued", join=join, max_wait=activity.max_wait, cooldowns=tuple(cooldowns), behind=True
    )
