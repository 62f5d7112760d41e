"""Suggestions: which known name a mistyped one was probably meant to be."""

from collections.abc import Iterable
from difflib import get_close_matches


def closest(word: str, known: Iterable[str], most: int = 1, cutoff: float = 0.6) -> list[str]:
    """Return at most `most` of the `known` names that resemble `word`, the most similar first, whatever their case."""
    names = {name.lower(): name for name in sorted(known)}
    return [names[name] for name in get_close_matches(word.lower(), names, most, cutoff)]


def did_you_mean(word: str, known: Iterable[str], otherwise: str = "") -> str:
    """Return `; did you mean NAME?` to end a sentence with, or `otherwise` if no known name resembles `word`."""
    near = closest(word, known)
    return f"; did you mean {near[0]}?" if near else otherwise
