"""Figures: samples of rounds, what they come to, and the goals they are held against."""

from statistics import median
from typing import Literal

from msgspec import Struct


def percentiles(values: list[float]) -> dict[str, float]:
    ranked = sorted(values)
    return {name: ranked[min(len(ranked) - 1, int(q * len(ranked)))] for name, q in (("p50", 0.50), ("p99", 0.99))}


class Ratio(Struct, frozen=True):
    """The median over the rounds, and how far they lie apart."""

    middle: float
    least: float
    most: float

    def __str__(self) -> str:
        middle, least, most = short(self.middle), short(self.least), short(self.most)
        return f"{middle}x" if least == most else f"{middle}x ({least} to {most})"


class Versus(Struct, frozen=True):
    """One measure of rota beside Huey, a sample per round each; the n-th of both were taken one after the other."""

    name: str
    unit: str
    better: Literal["more", "less"]
    rota: list[float]
    huey: list[float]
    memory: list[float] = []
    goal: float | None = None

    @property
    def ratio(self) -> Ratio:
        """How many times better rota is."""
        pairs = zip(self.rota, self.huey, strict=True)
        return _ratio([ours / theirs if self.better == "more" else theirs / ours for ours, theirs in pairs])

    @property
    def met(self) -> bool:
        return self.goal is None or self.ratio.middle >= self.goal


class Cost(Struct, frozen=True):
    """One cost of rota's as a multiple of what it is measured by: a bare transaction, or itself in a shorter queue."""

    name: str
    unit: str
    cost: list[float]
    measure: list[float]
    goal: float | None = None
    """At most this many times."""

    @property
    def ratio(self) -> Ratio:
        return _ratio([a / b for a, b in zip(self.cost, self.measure, strict=True)])

    @property
    def met(self) -> bool:
        return self.goal is None or self.ratio.middle <= self.goal


def _ratio(ratios: list[float]) -> Ratio:
    return Ratio(median(ratios), min(ratios), max(ratios))


def middle(samples: list[float]) -> str:
    """The median as text."""
    return short(median(samples)) if samples else ""


def short(value: float) -> str:
    """Three digits are all that a benchmark knows."""
    if value >= 100:
        return f"{float(f'{value:.3g}'):,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"
