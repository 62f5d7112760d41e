"""What is wrong with this schedule? Rules over a trigger, its zone and its policies; each gives a finding or none."""

from datetime import datetime

from rota.domain.lint import bounds, clocks, days, pace, steps
from rota.domain.lint.finding import LEVELS, Finding, Level
from rota.domain.lint.target import LintTarget

__all__ = ["Finding", "Level", "LintTarget", "lint"]

RULES = (*bounds.RULES, *pace.RULES, *days.RULES, *steps.RULES, *clocks.RULES)


def lint(target: LintTarget, now: datetime) -> list[Finding]:
    """The worst first. What the subject does not tell is not judged."""
    view = target.seen(now)
    findings = [finding for rule in RULES for finding in rule(view)]
    return sorted(findings, key=lambda finding: LEVELS.index(finding.level))
