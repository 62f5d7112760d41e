"""Each finding is found where it holds, is not where it does not, and reads as a sentence."""

import ast
from datetime import datetime
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rota.domain.lint
from rota.domain.lint import LintTarget, lint
from rota.domain.policy import Retry
from rota.domain.triggers import Cron, Every
from tests.domain.lint.cases import CASES, NOW, Case, findings
from tests.domain.triggers.strategies import crons, zoned_instants


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.code}: {case.wrong}")
def test_a_finding_is_found_where_it_holds_and_only_there(case: Case) -> None:
    right_policies = case.policies if case.right_policies is None else case.right_policies

    assert case.says in findings(case.wrong, **case.policies)[case.code].message
    assert case.code not in findings(case.right, **right_policies)


def test_every_finding_has_a_case() -> None:
    """The codes are read off the source: the first argument of each Finding(…)."""
    codes: set[str] = set()
    for file in Path(rota.domain.lint.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Finding":
                assert isinstance(node.args[0], ast.Constant)
                codes.add(str(node.args[0].value))

    assert {case.code for case in CASES} == codes


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.code}: {case.wrong}")
def test_a_finding_is_one_sentence_and_a_hint(case: Case) -> None:
    finding = findings(case.wrong, **case.policies)[case.code]

    for text in (finding.message, finding.hint):
        assert text.endswith(".")
        assert not text.endswith("..")
        assert "\n" not in text
        assert text[0].isupper() or text[0] in "*'0123456789c"


@pytest.mark.parametrize(
    "text",
    [
        "*/15 7-22 * * * Europe/Paris",
        "every 15m",
        "daily 09:00 Europe/Paris",
        "weekly mon,thu 09:00 Europe/Paris",
        "monthly -1 23:30 Europe/Paris",
        "0 12 * * 1#2 Europe/Berlin",
        "@hourly",
        "at 2027-01-01T00:00:00Z",
    ],
)
def test_a_sound_schedule_has_none(text: str) -> None:
    sound = {"overlap": "skip", "catch_up": "latest", "grace": 600, "duration": 60, "timeout": 300, "retry": Retry(3)}

    assert findings(text, zone="UTC", **sound) == {}


def test_the_worst_comes_first() -> None:
    target = LintTarget(trigger=Cron("0 9 31 * *"), duration=600, timeout=300)
    levels = [finding.level for finding in lint(target, NOW)]

    assert levels == ["error", "warning", "note"]


def test_retries_without_number_are_added_up_at_once() -> None:
    found = findings("every 10s", retry=Retry(10_000_000, backoff="fixed", delay=1.0))

    assert "lasts 115 days 17 hours 46 minutes 40 seconds" in found["retries-interval"].message


@settings(max_examples=150, deadline=None)
@given(expr=crons(), place=zoned_instants(2020, 2039), seconds=st.none() | st.floats(1, 1e6))
def test_every_cron_can_be_judged(expr: str, place: tuple[str, datetime], seconds: float | None) -> None:
    zone, now = place
    try:
        trigger = Cron(expr, zone)
    except ValueError:  # a date that never comes
        return
    target = LintTarget(trigger=trigger, grace=seconds, duration=seconds, timeout=seconds, retry=Retry(3))

    assert all(finding.message and finding.hint for finding in lint(target, now))


@given(st.floats(0.1, 1e7), st.floats(0.1, 1e7))
def test_an_interval_overruns_exactly_when_it_is_shorter_than_a_run(interval: float, duration: float) -> None:
    every = Every(interval)
    found = {finding.code for finding in lint(LintTarget(trigger=every, duration=duration), NOW)}

    assert ("overrun" in found) == (duration > every.interval.total_seconds())
