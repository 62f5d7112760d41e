"""Lint of schedules: rules over a trigger, its zone and its policies. Each rule yields findings."""

from datetime import datetime

from rota.domain.lint import bounds, clocks, cron_steps, days, pace
from rota.domain.lint.finding import LEVELS, Finding, Level
from rota.domain.lint.target import LintTarget

__all__ = ["Finding", "Level", "LintTarget", "lint"]

RULES = (*bounds.RULES, *pace.RULES, *days.RULES, *cron_steps.RULES, *clocks.RULES)


def lint(target: LintTarget, now: datetime) -> list[Finding]:
    """Return the findings about a schedule, the worst first. A rule is silent if a value that it needs is unknown."""
    view = target.seen(now)
    findings = [finding for rule in RULES for finding in rule(view)]
    return sorted(findings, key=lambda finding: LEVELS.index(finding.level))
