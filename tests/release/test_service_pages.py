"""Pages about the service: what they list exists, and nothing that exists is missing."""

import re
from pathlib import Path

from tools.http_page import PAGE, fresh

ROOT = Path(__file__).parents[2]
TESTS = ROOT / "tests"


def test_the_page_of_routes_is_fresh() -> None:
    assert PAGE.read_text() == fresh(PAGE.read_text()), "run: python -m tools.http_page"


def test_the_tests_that_the_page_of_security_names_exist() -> None:
    text = (ROOT / "docs" / "security.md").read_text()
    rows = re.findall(r"`([a-z_]+/test_[a-z_0-9]+\.py)`(?: \(((?:`[a-z_]+`(?:, )?)+)\))?", text)
    assert len(rows) > 20
    for file, names in rows:
        source = (TESTS / file).read_text()
        missing = [name for name in re.findall(r"`([a-z_]+)`", names) if f"def test_{name}" not in source]
        assert not missing, (file, missing)


def test_every_rule_has_a_test() -> None:
    text = (ROOT / "docs" / "security.md").read_text()
    rules = re.findall(r"^\| (\d+) \| .* \| (.+) \|$", text, re.MULTILINE)
    assert [int(number) for number, _ in rules] == list(range(1, 17))
    assert all("`" in tests for _, tests in rules)
