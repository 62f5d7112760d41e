"""Policies: what happens when a call fails or hangs or its worker dies, and how many runs may start."""

import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from rota.domain.failure import Failure
from rota.domain.kinds import check_struct, is_number, is_whole

Backoff = Literal["exponential", "linear", "fixed"]
Lost = Literal["retry", "fail"]
TraceMode = Literal["link", "parent"]
RetryFunction: TypeAlias = Callable[[int, Failure], float | None]
"""Takes the number of failures and the last one; returns the seconds until the next try, or None for no more."""

FAR = 10 * 365 * 86_400.0
"""The longest time span that an option may have, in seconds."""
FACTOR = 1000.0
"""The largest factor of a Retry."""
LEAST_SILENCE = 1.0
"""The shortest `silence` of a worker, in seconds. Every event loop is blocked for a moment now and then: with a shorter
silence, healthy workers would lose their leases."""


MOST_WEIGHT, MOST_WEIGHTS = 100, 1000
"""The largest weight in a Share, and the most of them."""


class Retry(Struct, frozen=True, omit_defaults=True):
    """How often a failed call is repeated, and after how many seconds; `Retry(5)` is five *re*tries, `Retry(None)` any
    number.

    The n-th retry waits `delay` (fixed), `delay * n` (linear) or `delay * factor**(n-1)` (exponential) seconds, at most
    `max_delay`, shortened by up to `jitter` of itself. The jitter is drawn from the run's id, so it is stable.
    `rules` maps exception classes to their own Retry, the nearest class winning: `{ValueError: Retry(0)}`.
    `after` is a function that says instead how long to wait; the worker calls it with the number of failures and the
    Failure, and None ends the run.
    """

    limit: int | None = 0
    backoff: Backoff = "exponential"
    delay: float = 1.0
    max_delay: float = 3600.0
    jitter: float = 0.1
    rules: Mapping[type[BaseException], "Retry"] | None = None
    factor: float = 2.0
    after: RetryFunction | None = None

    def __post_init__(self) -> None:
        if self.limit is not None and (not is_whole(self.limit) or self.limit < 0):
            raise ValueError(
                f"Retry(limit={self.limit!r}): the number of retries is a whole number from 0, or None for no end"
            )
        if not is_number(self.factor) or not 1 <= self.factor <= FACTOR:
            raise ValueError(f"Retry(factor={self.factor!r}): a number from 1 to {FACTOR:g}")
        if self.backoff not in ("exponential", "linear", "fixed"):
            raise ValueError(f"Retry(backoff={self.backoff!r}): choose exponential, linear or fixed")
        if not all(is_number(span) and 0 <= span <= FAR for span in (self.delay, self.max_delay)):
            raise ValueError(f"Retry(delay={self.delay!r}, max_delay={self.max_delay!r}): seconds from 0")
        if not is_number(self.jitter) or not 0 <= self.jitter <= 1:
            raise ValueError(f"Retry(jitter={self.jitter!r}): a share from 0 to 1")
        check_struct(self)
        for kind, rule in (self.rules or {}).items():
            if not _is_retry(rule):
                raise ValueError(f"Retry(rules={{{kind.__name__}: {rule!r}}}): write Retry({rule!r})")

    def for_error(self, error: BaseException) -> "Retry":
        for cls in type(error).__mro__:
            if self.rules and cls in self.rules:
                return self.rules[cls]
        return self

    def for_names(self, names: Sequence[str]) -> "Retry":
        """Return the rule for an exception of a child process, by the qualified names of its classes, nearest first."""
        rules = {f"{cls.__module__}.{cls.__qualname__}": rule for cls, rule in (self.rules or {}).items()}
        return next((rules[name] for name in names if name in rules), self)

    def wait(self, failures: int, seed: str) -> float:
        """Return the seconds to wait after the failure with number `failures`. `seed` decides the jitter."""
        factor = {
            "fixed": 1.0,
            "linear": float(failures),
            "exponential": self.factor ** min(failures - 1, 40),
        }[self.backoff]
        roll = zlib.crc32(f"{seed}:{failures}".encode()) / 2**32
        return min(self.delay * factor, self.max_delay) * (1 - self.jitter * roll)

    def allows(self, failures: int) -> bool:
        """Return whether a call that has failed `failures` times before may be repeated."""
        return self.limit is None or failures < self.limit

    def answered(self, seconds: float | None) -> "Retry":
        """Return the retry after its function has said `seconds`."""
        if seconds is None:
            return Retry(0)
        return replace(self, after=None, backoff="fixed", delay=seconds, max_delay=FAR, jitter=0.0)

    def without_rules(self) -> "Retry":
        """Return the retry without its rules and its function: no run stores classes or code."""
        return replace(self, rules=None, after=None) if self.rules or self.after else self


def _is_retry(value: object) -> bool:
    return isinstance(value, Retry)


class Policy(Struct, frozen=True, omit_defaults=True):
    """What happens when a call fails or its worker dies. It is stored with the run at submit, so that any worker can
    apply it."""

    retry: Retry = Retry()
    timeout: float | None = None
    lost: Lost = "retry"
    max_losses: int = 5
    own_retry: bool = False
    """Whether a submit or a schedule gave `retry`. If not, a worker uses the retry that the task has in its code."""
    overridden_retry: bool = False
    """Whether an operator gave `retry` (`domain.overrides`). A claim says so; no run stores it."""

    def __post_init__(self) -> None:
        if not _is_retry(self.retry):
            raise ValueError(f"retry={self.retry!r}: write retry=Retry({self.retry!r})")
        if self.timeout is not None and (not is_number(self.timeout) or not 0 < self.timeout <= FAR):
            raise ValueError(f"timeout={self.timeout!r}: more than 0 seconds, as a number, or None for no timeout")
        if self.lost not in ("retry", "fail"):
            raise ValueError(f"lost={self.lost!r}: choose 'retry' (at least once) or 'fail' (at most once)")
        if not is_whole(self.max_losses) or self.max_losses < 1:
            raise ValueError(f"max_losses={self.max_losses!r}: at least 1")

    def frozen(self) -> "Policy":
        """Return the policy as it is stored with a run: without exception classes."""
        return replace(self, retry=self.retry.without_rules())

    def overridden(self, timeout: float | None, retry: Retry | None, lost: Lost | None) -> "Policy":
        """Return the policy with the options that a submit or a schedule gives. None keeps the value of this policy."""
        if timeout is None and retry is None and lost is None:
            return self
        if retry is not None and retry.rules:
            raise ValueError("retry: its rules name exception classes, which no run stores; give the rules to the task")
        if retry is not None and retry.after is not None:
            raise ValueError("retry: after= is a function, which no run stores; give it to the task")
        return replace(
            self,
            timeout=self.timeout if timeout is None else timeout,
            retry=self.retry if retry is None else retry,
            lost=self.lost if lost is None else lost,
            own_retry=self.own_retry or retry is not None,
        )


class Limit(Struct, frozen=True, omit_defaults=True):
    """How many runs of a task may run at once: in total, and for each key. They are counted from leases.

    A limit with a `name` is shared: all tasks that have it count together, in every app of the store.
    """

    total: int | None = None
    per_key: int | None = None
    name: str | None = None

    def __post_init__(self) -> None:
        for name, value in (("total", self.total), ("per_key", self.per_key)):
            if value is not None and (not is_whole(value) or value < 1):
                raise ValueError(f"Limit({name}={value!r}): a whole number from 1, or None for no limit")
        if self.total is None and self.per_key is None:
            raise ValueError("Limit() limits nothing: give total, per_key or both")
        if self.name is not None:
            _check_limit_name(self)


def _check_limit_name(limit: Limit) -> None:
    name = limit.name
    if not isinstance(name, str) or not 0 < len(name) <= 100 or not name.isprintable() or " " in name:
        raise ValueError(f"Limit(name={name!r}): 1 to 100 printable characters without spaces")
    if limit.total is None or limit.per_key is not None:
        raise ValueError(f"Limit(name={name!r}): a named limit has a total and no per_key")


class Share(Struct, frozen=True, omit_defaults=True):
    """Waiting runs of a task take turns by the text that `template` makes of their arguments: `Share("{tenant}")`.

    In each turn, `weights[text]` runs of that text start, if so many are due; one for a text that has no weight.
    """

    template: str
    weights: dict[str, int] = {}

    def __post_init__(self) -> None:
        if not _is_text(self.template):
            raise ValueError(f'Share({self.template!r}): a template such as Share("{{tenant}}")')
        if not _is_table(self.weights) or len(self.weights) > MOST_WEIGHTS:
            raise ValueError(f"Share(weights={self.weights!r:.80}): at most {MOST_WEIGHTS:,} texts with their weights")
        for text, weight in self.weights.items():
            if not _is_text(text) or not is_whole(weight) or not 1 <= weight <= MOST_WEIGHT:
                raise ValueError(f"Share(weights={{{text!r}: {weight!r}}}): a whole number from 1 to {MOST_WEIGHT}")

    def weight(self, text: str) -> int:
        return self.weights.get(text, 1)


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_table(value: object) -> bool:
    return isinstance(value, dict)


class Rate(Struct, frozen=True, omit_defaults=True):
    """At most `n` starts per `per` seconds, evenly spaced. After a quiet time, `burst` of them may come at once.

    With `per_key`, each key has a rate of its own.
    """

    n: int
    per: float = 1.0
    burst: int = 1
    per_key: bool = False

    def __post_init__(self) -> None:
        if not is_whole(self.n) or self.n < 1:
            raise ValueError(f"Rate({self.n!r}): a whole number of starts, at least 1")
        check_struct(self)
        if not 0 < self.per <= FAR:
            raise ValueError(f"Rate(per={self.per!r}): more than 0 seconds")
        if not is_whole(self.burst) or self.burst < 1:
            raise ValueError(f"Rate(burst={self.burst!r}): a whole number from 1")

    @property
    def interval(self) -> float:
        """Seconds between two evenly spaced starts."""
        return self.per / self.n
