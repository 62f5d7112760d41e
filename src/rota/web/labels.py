"""Labels of metrics: how many names they show."""

from collections.abc import Callable, Iterable

from rota.store import OTHER

MOST_SERIES = 500
"""The most tasks, and the most schedules, that metrics name."""


class Labels:
    """Chooses the names that metrics show; the others are added up as `_other`.

    A name that was shown stays shown as long as this process serves. So no counter falls because another name came:
    Prometheus would take that for a restart, and see a peak.
    """

    def __init__(self) -> None:
        self._shown: dict[str, set[str]] = {}
        self.dropped: dict[str, int] = {}
        """How many names of each label were not shown, at the most."""

    def named(self, label: str, names: Iterable[str]) -> Callable[[str], str]:
        """Return how metrics call a thing: by its name, or `_other`."""
        shown = self._shown.setdefault(label, set())
        fresh = sorted(set(names) - shown)
        room = max(0, MOST_SERIES - len(shown))
        shown.update(fresh[:room])
        self.dropped[label] = max(self.dropped.get(label, 0), len(fresh[room:]))
        return lambda name: name if name in shown else OTHER
