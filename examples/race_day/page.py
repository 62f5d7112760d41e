"""How a day is shown on a terminal."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

from examples.race_day.racing import PARIS
from rota import FlowStatus, Run

SIGNS = {"done": "✔", "skipped": "»", "failed": "✖", "blocked": "■", "waiting": "…", "running": "▶", "absent": "·"}
"""The same as `rota flows` shows."""


def grid(moments: Mapping[str, FlowStatus]) -> Iterator[str]:
    """The steps of the day, as they stood when somebody looked."""
    names = list(next(iter(moments.values())).steps)
    width = max(map(len, names))
    yield " ".join(["".ljust(width), *(moment.center(7) for moment in moments)]).rstrip()
    for name in names:
        signs = [SIGNS.get(status.steps[name].state, "?").center(7) for status in moments.values()]
        yield " ".join([name.ljust(width), *signs, _words(moments, name)]).rstrip()


def _words(moments: Mapping[str, FlowStatus], name: str) -> str:
    said: dict[str, None] = {}
    for moment, status in moments.items():
        step = status.steps[name]
        if step.blocked_by:
            said[f"{moment} blocked by {', '.join(step.blocked_by)}"] = None
        else:
            said[f"{clock(step.since)} {step.state}"] = None
    return "; ".join(said)


def counts(runs: Sequence[Run], tasks: Sequence[str]) -> Iterator[str]:
    for task in tasks:
        ends = Counter(str(run.reason or run.state) for run in runs if run.task == task)
        yield f"{task}: " + ", ".join(f"{count} {end}" for end, count in sorted(ends.items()))


def clock(instant: float | None) -> str:
    return "" if instant is None else f"{datetime.fromtimestamp(instant, PARIS):%H:%M}"
