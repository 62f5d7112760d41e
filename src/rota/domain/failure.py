"""Failure: the exception of one call, as it is stored."""

from msgspec import Struct


class Failure(Struct, frozen=True, omit_defaults=True):
    """The exception of one call as text. Exception objects are never stored."""

    type: str
    message: str
    traceback: str = ""

    def __str__(self) -> str:
        return f"{self.type}: {self.message}" if self.message else self.type
