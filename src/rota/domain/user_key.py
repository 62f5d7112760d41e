"""UserKey: a key made of a user, a device and an agent."""

import re
from collections.abc import Collection, Mapping

from msgspec import Struct

from rota.domain.keys import check_key
from rota.domain.kinds import check_struct

MISSING = "default"
ESCAPES = {"%": "%25", ":": "%3A"}
PLAIN = {escape: letter for letter, escape in ESCAPES.items()}
PART = re.compile(r"(?:[^:%]|%25|%3A)+", re.DOTALL)


class UserParts(Struct, frozen=True):
    """The parts of a key; None for a dimension that the key does not have."""

    user_id: str
    device_id: str | None = None
    agent_id: str | None = None


class UserKey(Struct, frozen=True, omit_defaults=True):
    """The key `user:device:agent`, or without the device, the agent or both.

    A device or agent that is not given is `default_device` or `default_agent`. Ids may have any character that a key
    may have: `:` is written `%3A`, and `%` is written `%25`.
    """

    device: bool = True
    agent: bool = True
    default_device: str = MISSING
    default_agent: str = MISSING

    def __post_init__(self) -> None:
        check_struct(self)

    @property
    def dimensions(self) -> tuple[str, ...]:
        """The names of the parts, in order."""
        return ("user_id", *(("device_id",) if self.device else ()), *(("agent_id",) if self.agent else ()))

    def build(self, user_id: str, device_id: str | None = None, agent_id: str | None = None) -> str:
        """Return the key. A part whose dimension the key does not have is left out."""
        if not user_id:
            raise ValueError("a user key needs a user: user_id is empty")
        given = {
            "user_id": user_id,
            "device_id": device_id or self.default_device,
            "agent_id": agent_id or self.default_agent,
        }
        return check_key(":".join(_escape(given[name]) for name in self.dimensions))

    def parse(self, text: str) -> UserParts:
        """Return the parts of a key that `build` made."""
        parts = text.split(":")
        if len(parts) != len(self.dimensions):
            raise ValueError(f"{text!r} is no key of {self._spelled()}: it has {len(parts)} parts")
        for part in parts:
            if not PART.fullmatch(part):
                wrong = "an empty part" if not part else f"{part!r}, in which % is not written %25"
                raise ValueError(f"{text!r} is no key of {self._spelled()}: it has {wrong}")
        return UserParts(**{name: _unescape(part) for name, part in zip(self.dimensions, parts, strict=True)})

    def fill(self, arguments: Mapping[str, object]) -> str:
        """Return the key of a call from its arguments `user_id`, `device_id` and `agent_id`."""
        given = {name: _text(arguments.get(name)) for name in self.dimensions}
        return self.build(given.pop("user_id"), **given)

    def check(self, parameters: Collection[str]) -> None:
        """Raise ValueError if a task has no parameter `user_id`. The others may be missing: they have defaults."""
        if "user_id" not in parameters:
            known = ", ".join(parameters) or "none"
            raise ValueError(f"a user key needs a parameter user_id; there are: {known}")

    def _spelled(self) -> str:
        return ":".join(name.removesuffix("_id") for name in self.dimensions)


def _text(value: object) -> str:
    return "" if value is None else str(value)


def _escape(part: str) -> str:
    return re.sub("[%:]", lambda found: ESCAPES[found[0]], part)


def _unescape(part: str) -> str:
    return re.sub("%25|%3A", lambda found: PLAIN[found[0]], part)
