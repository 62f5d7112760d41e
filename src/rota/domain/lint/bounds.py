"""Rules: does the schedule fire at all, and do its exclusions exclude anything?"""

from collections.abc import Callable, Iterator
from datetime import timedelta

from rota.domain.lint.finding import Finding
from rota.domain.lint.target import View
from rota.domain.triggers import At, AtStart, Excluding, Intersection, Trigger
from rota.domain.triggers.base import spell_instant

RARE = timedelta(days=366)
LOOKED_AT = 400
"""How many fires of the trigger and of an exclusion are compared."""


def past(view: View) -> Iterator[Finding]:
    if isinstance(view.base, At) and view.base.instant <= view.now:
        yield Finding(
            "past",
            "error",
            f"Its only instant, {spell_instant(view.base.instant)}, has passed, so it never fires.",
            "Name an instant that is still to come; for work that is due now, submit the task.",
        )


def never(view: View) -> Iterator[Finding]:
    if isinstance(view.base, AtStart) or (isinstance(view.base, At) and view.base.instant <= view.now):
        return
    if view.nothing_left or not view.fires:
        yield Finding(
            "never",
            "error",
            f"It never fires: nothing is left of '{view.trigger}' after {spell_instant(view.now)}.",
            _more_fires(view.trigger),
        )


def _more_fires(trigger: Trigger) -> str:
    match trigger:
        case Excluding():
            return "Take an exclusion away, or narrow it down."
        case Intersection():
            return "Between its parts there is no instant at which all of them fire: give them a time in common."
        case _:
            return "Change the date."


def rare(view: View) -> Iterator[Finding]:
    if not view.fires or isinstance(view.base, At):
        return
    first = view.fires[0]
    if first - view.now > RARE:
        years = (first - view.now) / timedelta(days=365.2425)
        yield Finding(
            "rare",
            "note",
            f"It does not fire before {first:%Y-%m-%d}, in {years:.1f} years.",
            "If that is too seldom, check its day and month; for a single date write 'at' with the instant.",
        )


def excludes_nothing(view: View) -> Iterator[Finding]:
    if not isinstance(view.trigger, Excluding) or not view.fires:
        return
    for other in view.trigger.others:
        if not _meet(view.base.anchored(view.now), other.anchored(view.now), view):
            yield Finding(
                "excludes-nothing",
                "warning",
                f"'{other}' excludes nothing: it fires at none of the instants at which '{view.base}' fires.",
                "An exclusion takes away instants, not days: for no fire on Sundays, exclude 'cron * * * * sun'.",
            )


def _meet(base: Trigger, other: Trigger, view: View) -> bool:
    try:
        return any(
            theirs.fires_at(fire)
            for ours, theirs in ((base, other), (other, base))
            for fire in ours.upcoming(view.now, LOOKED_AT)
        )
    except ValueError:  # the exclusions of an exclusion exclude all its fires
        return False


RULES: tuple[Callable[[View], Iterator[Finding]], ...] = (past, never, rare, excludes_nothing)
