"""Lint of schedules: rules over a trigger, its zone and its policies. Each rule yields findings."""

from datetime import datetime

from msgspec.structs import replace

from rota.domain.lint import bounds, clocks, cron_steps, days, pace
from rota.domain.lint.finding import LEVELS, Finding, Level
from rota.domain.lint.target import LintTarget
from rota.domain.triggers import Excluding, Intersection, Trigger, Union

__all__ = ["Finding", "Level", "LintTarget", "lint"]

PART_RULES = (*days.RULES, *cron_steps.RULES, *clocks.RULES)
"""Rules that hold for each part of `a or b` and `a and b`."""
RULES = (*bounds.RULES, *pace.RULES, *PART_RULES)


def lint(target: LintTarget, now: datetime) -> list[Finding]:
    """Return the findings about a schedule, the worst first. A rule is silent if a value that it needs is unknown."""
    view = target.seen(now)
    findings = [finding for rule in RULES for finding in rule(view)]
    for part in _parts(view.trigger):
        seen = replace(view, trigger=part)
        findings += [finding for rule in PART_RULES for finding in rule(seen)]
    return sorted(dict.fromkeys(findings), key=lambda finding: LEVELS.index(finding.level))


def _parts(trigger: Trigger) -> list[Trigger]:
    """Return the parts of `a or b` and `a and b`, down to those that are neither."""
    if isinstance(trigger, Excluding):
        return _parts(trigger.trigger)
    if not isinstance(trigger, Union | Intersection):
        return []
    return [leaf for part in trigger.triggers for leaf in _parts(part) or [part]]
