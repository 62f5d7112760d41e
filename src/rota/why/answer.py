"""What an answer is made of, and how it speaks of time."""

from datetime import UTC, datetime

from msgspec import Struct


class Fact(Struct, frozen=True):
    """One thing that was looked at. `holds` if it keeps work from starting now."""

    about: str
    text: str
    holds: bool = False


class Why(Struct, frozen=True):
    """All that was looked at, in order; the first fact that holds something up is the answer."""

    subject: str
    kind: str
    facts: tuple[Fact, ...]

    @property
    def answer(self) -> str:
        held = next((fact for fact in self.facts if fact.holds), None)
        return held.text if held is not None else self.facts[-1].text

    @property
    def held(self) -> bool:
        return any(fact.holds for fact in self.facts)

    def __str__(self) -> str:
        return "\n".join(
            (f"{self.kind} {self.subject}: {self.answer}", *(f"- {f.about}: {f.text}" for f in self.facts))
        )


UNITS = ((86_400.0, "day"), (3600.0, "hour"), (60.0, "minute"), (1.0, "second"))


def spell(instant: float) -> str:
    return datetime.fromtimestamp(instant, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def away(instant: float, now: float) -> str:
    """`in 5 minutes`, `3 hours ago`."""
    seconds = abs(instant - now)
    size, unit = next((pair for pair in UNITS if seconds >= 1.5 * pair[0]), UNITS[-1])
    count = round(seconds / size)
    words = f"{count} {unit}" if count == 1 else f"{count} {unit}s"
    return f"in {words}" if instant > now else f"{words} ago"


def at(instant: float, now: float) -> str:
    return f"{away(instant, now)} ({spell(instant)})"


def many(count: int, noun: str) -> str:
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"
