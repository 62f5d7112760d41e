"""Answers to `why`: one sentence, and the facts behind it."""

from msgspec import Struct


class Fact(Struct, frozen=True):
    """One fact that was found. `holds` is True if it keeps work from starting now."""

    about: str
    text: str
    holds: bool = False


class Why(Struct, frozen=True):
    """The answer in one sentence, and all facts in order."""

    subject: str
    kind: str
    answer: str
    facts: tuple[Fact, ...]

    @property
    def held(self) -> bool:
        return any(fact.holds for fact in self.facts)

    def __str__(self) -> str:
        return "\n".join(
            (f"{self.kind} {self.subject}: {self.answer}", *(f"- {f.about}: {f.text}" for f in self.facts))
        )
