"""Answers to `why`: one sentence, and the facts behind it."""

from msgspec import Struct


class Fact(Struct, frozen=True):
    """One fact that was found. `holds` is True if it keeps work from starting now; then `until` is when that ends by
    itself, None if somebody or something has to end it, or if nobody knows when."""

    about: str
    text: str
    holds: bool = False
    until: float | None = None
    link: str | None = None
    """Where to read what it is about: a path of the HTTP API below /api/v1; None if there is no such place."""


class Why(Struct, frozen=True):
    """The answer in one sentence, and all facts in order. `changes_at`: when the answer will be another one, as far as
    that is known: what holds the work ends by itself, or the next tick makes a run."""

    subject: str
    kind: str
    answer: str
    facts: tuple[Fact, ...]
    changes_at: float | None = None

    @property
    def held(self) -> bool:
        return any(fact.holds for fact in self.facts)

    def __str__(self) -> str:
        return "\n".join(
            (f"{self.kind} {self.subject}: {self.answer}", *(f"- {f.about}: {f.text}" for f in self.facts))
        )
