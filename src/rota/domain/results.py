"""What a returned value means: a success, or how the work went where the handler says so in its result."""

from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from typing import Any, Literal, cast, get_args

from msgspec import Struct

Status = Literal["success", "skipped", "failed", "partial"]
STATUSES: tuple[str, ...] = get_args(Status)
MESSAGES = ("message", "error_message", "error", "reason")
"""The keys of a status dict that may hold its message, the first one that is there winning."""


class StatusReport(Struct, frozen=True):
    """How the work of one call went. A `fail_on` function may return it instead of True or False.

    "success" and "skipped" end the run well, "skipped" without counting as done. "failed" and "partial" are failures
    and may be retried. `warnings` are kept with the attempt, and so are the `errors` of a success.
    """

    status: Status
    message: str = ""
    errors: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.status not in STATUSES:
            raise ValueError(f"StatusReport({self.status!r}): choose {', '.join(STATUSES)}")

    @property
    def ok(self) -> bool:
        return self.status in ("success", "skipped")

    @property
    def words(self) -> str:
        """The message, followed by the errors."""
        return ": ".join(filter(None, (self.message, "; ".join(self.errors))))

    @property
    def notes(self) -> tuple[str, ...]:
        """What is kept with the attempt as warnings: the errors too, where no failure carries them."""
        return (*self.errors, *self.warnings) if self.ok else self.warnings


FailOn = Callable[[Any], bool | StatusReport | None]
"""Judges a returned value: True is a failure; a StatusReport says it with words."""


def status_dict(result: Any) -> StatusReport | None:
    """Read a result like `{"status": "failed", "message": "no data", "errors": [...], "warnings": [...]}`.

    For `fail_on=` of a task, a flow or an app. The status is success, skipped, failed or partial; a status that is
    none of these is a failure, because nobody knows what it means. A result without a status is a success.
    """
    if not isinstance(result, Mapping) or "status" not in result:
        return None
    fields = cast("Mapping[str, Any]", result)
    status = fields["status"].value if isinstance(fields["status"], Enum) else fields["status"]
    if status not in STATUSES:
        return StatusReport("failed", f"the returned status {status!r} is none of {', '.join(STATUSES)}")
    message = next((fields[name] for name in MESSAGES if fields.get(name)), "")
    return StatusReport(status, str(message), _texts(fields.get("errors")), _texts(fields.get("warnings")))


def _texts(value: object) -> tuple[str, ...]:
    """One text, a list of anything, or nothing."""
    if value is None or value == "":
        return ()
    if isinstance(value, str) or not isinstance(value, Iterable):
        return (str(value),)
    return tuple(str(item) for item in cast("Iterable[object]", value))


def check_fail_on(fail_on: object) -> FailOn | None:
    if fail_on is not None and not callable(fail_on):
        raise TypeError(f"fail_on={fail_on!r}: a function of the result, such as status_dict, or None")
    return cast("FailOn | None", fail_on)


def chosen(*readers: FailOn | None) -> FailOn | None:
    """The first that is there: the task's own, then that of its flow, then that of its app."""
    return next((reader for reader in readers if reader is not None), None)


def judged(result: object, reader: FailOn | None) -> StatusReport:
    """What a result means. What the reader raises is for the caller."""
    judgement = None if reader is None else reader(result)
    if isinstance(judgement, StatusReport):
        return judgement
    return StatusReport("failed", f"the result {result!r} means failure") if judgement else StatusReport("success")
