"""Results: whether a returned value means success or failure."""

from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from typing import Any, Literal, cast, get_args

from msgspec import Struct

Status = Literal["success", "skipped", "failed", "partial"]
STATUSES: tuple[str, ...] = get_args(Status)
MESSAGES = ("message", "error_message", "error", "reason")
"""The keys of a status dict that may have the message. The first one that is present counts."""


class StatusReport(Struct, frozen=True):
    """Whether the work of one call succeeded. A `fail_on` function may return it instead of True or False.

    After "success" and "skipped" the run succeeds; "skipped" writes no mark. "failed" and "partial" are failures and
    may be retried. `warnings` are stored with the attempt, and so are the `errors` of a success.
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
        """The warnings to store with the attempt. They include the errors of a success, which has no failure to hold
        them."""
        return (*self.errors, *self.warnings) if self.ok else self.warnings


FailOn = Callable[[Any], bool | StatusReport | None]
"""A function that reads a returned value: True means failure; a StatusReport also has a message."""


def status_dict(result: Any) -> StatusReport | None:
    """Read a result like `{"status": "failed", "message": "no data", "errors": [...], "warnings": [...]}`.

    For `fail_on=` of a task, a flow or an app. The status is success, skipped, failed or partial; any other status is a
    failure, because its meaning is unknown. A result without a status is a success.
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
    """Return the texts of a value that is one text, a list, or nothing."""
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
    """Return the first reader that is not None: of the task, of its flow, of its app."""
    return next((reader for reader in readers if reader is not None), None)


def judged(result: object, reader: FailOn | None) -> StatusReport:
    """Return what a result means. Exceptions of the reader pass through."""
    judgement = None if reader is None else reader(result)
    if isinstance(judgement, StatusReport):
        return judgement
    return StatusReport("failed", f"the result {result!r} means failure") if judgement else StatusReport("success")
