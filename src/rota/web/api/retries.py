"""Retries as a body has them: a number, or all that Retry takes but code."""

from typing import Annotated

from msgspec import Meta, Struct
from msgspec.structs import asdict

from rota.domain.policy import Retry

MOST = 2**31 - 1


class RetryBody(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """How often a failed call is repeated; null: without end. `delay` and `max_delay` are seconds."""

    limit: Annotated[int, Meta(ge=0, le=MOST)] | None = 0
    backoff: str = "exponential"
    delay: Annotated[float, Meta(ge=0)] = 1.0
    max_delay: Annotated[float, Meta(ge=0)] = 3600.0
    jitter: Annotated[float, Meta(ge=0, le=1)] = 0.1
    factor: Annotated[float, Meta(ge=1)] = 2.0


Again = Annotated[int, Meta(ge=0, le=MOST)] | RetryBody


def retry_from(given: int | RetryBody) -> Retry:
    return Retry(**asdict(given)) if isinstance(given, RetryBody) else Retry(given)
