"""Writes docs/requirements.md from the table and marks of tests/requirement.py; `--check` fails when it is stale."""

import argparse
import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.requirement import REQUIREMENTS, SECTIONS, Requirement

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "requirements.md"
HEAD = """\
# Requirements

What rota has to do, and the tests that show it. `make format` writes this page from the table in
`tests/requirement.py` and from the marks of the tests; edit those, not the page. A number is a requirement. A letter is
a weakness that schedulers of this kind often have, and that rota must not have.
"""
NOT_YET = """
## Not built yet

A number that a table above has as well is built in part.
"""


@dataclass(frozen=True)
class MarkedTest:
    """A test function, and the numbers of its `@requirement(number)` marks; it may have none."""

    path: str
    name: str
    numbers: tuple[str, ...]


def marked_tests(path: str, source: str) -> Iterator[MarkedTest]:
    """Yield the test functions of a module with their marks; `path` is relative to the root of the repository."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
            calls = [call for call in node.decorator_list if isinstance(call, ast.Call)]
            marks = [call.args for call in calls if ast.unparse(call.func) == "requirement"]
            if any(len(arguments) != 1 for arguments in marks):
                raise SystemExit(f"{path}::{node.name}: write @requirement(number)")
            yield MarkedTest(path, node.name, tuple(str(ast.literal_eval(number)) for (number,) in marks))


def order(number: str) -> tuple[int, int, str]:
    """Sort by section, then the numbers, then the letters."""
    section, place = number.split(".")
    return (int(section), int(place), "") if place.isdecimal() else (int(section), 1000, place)


def mistakes(
    tests: Iterable[MarkedTest], sections: Mapping[int, str], table: Mapping[str, Requirement]
) -> Iterator[str]:
    """Yield what is wrong with the table and the marks, one sentence each."""
    tests = list(tests)
    shown = {number for test in tests for number in test.numbers}
    for number, row in table.items():
        if not re.fullmatch(r"\d\.(\d+|[a-z])", number) or int(number[0]) not in sections:
            yield f"{number}: not a number like 3.6 or 3.a, or there is no such section"
        if row.built and number not in shown:
            yield f"{number}: no test shows it"
        if number in shown and not row.built:
            yield f"{number}: a test shows it, but the table does not say what is built"
        for text in filter(None, row):
            if not re.fullmatch(r"[A-Z`].*[^.]\.", text):
                yield f"{number}: the text is not a sentence with a full stop: {text}"
    for test in tests:
        yield from _mistakes_of(test, table)


def _mistakes_of(test: MarkedTest, table: Mapping[str, Requirement]) -> Iterator[str]:
    where = f"{test.path}::{test.name}"
    if test.path.startswith("tests/acceptance/") and not test.numbers:
        yield f"{where}: say with @requirement what it shows"
    for number in test.numbers:
        if number not in table:
            yield f"{where}: the table of tests/requirement.py has no {number}"
    named = re.match(r"test_(\d)_(\d+)_", test.name)
    if named and test.numbers and f"{named[1]}.{named[2]}" not in test.numbers:
        yield f"{where}: its name says {named[1]}.{named[2]}, its mark does not"


def page(tests: Iterable[MarkedTest], sections: Mapping[int, str], table: Mapping[str, Requirement]) -> str:
    """Return the page: a table for each section, then what is not built yet."""
    tests = list(tests)
    rows = [(number, table[number]) for number in sorted(table, key=order)]
    lines = [HEAD.rstrip()]
    for section, title in sections.items():
        lines += [f"\n## {section} · {title}\n", "| | rota | Shown by |", "|---|---|---|"]
        for number, row in rows:
            if row.built and number.startswith(f"{section}."):
                links = "<br>".join(_link(test) for test in tests if number in test.numbers)
                lines.append(f"| {number} | {row.built} | {links} |")
    if any(row.not_yet for _, row in rows):
        lines += [NOT_YET, "| | |", "|---|---|"]
        lines += [f"| {number} | {row.not_yet} |" for number, row in rows if row.not_yet]
    return "\n".join(lines) + "\n"


def _link(test: MarkedTest) -> str:
    return f"[`{test.path.removeprefix('tests/')}::{test.name}`](../{test.path})"


def all_tests() -> list[MarkedTest]:
    """Read the tests of the acceptance folder, and those elsewhere that have a mark."""
    found: list[MarkedTest] = []
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        name, source = path.relative_to(ROOT).as_posix(), path.read_text()
        if "@requirement(" in source or name.startswith("tests/acceptance/"):
            found += marked_tests(name, source)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; fail when the page is stale")
    check: bool = parser.parse_args().check
    tests = all_tests()
    if wrong := list(mistakes(tests, SECTIONS, REQUIREMENTS)):
        raise SystemExit("\n".join(wrong))
    text = page(tests, SECTIONS, REQUIREMENTS)
    if not check:
        PAGE.write_text(text)
    elif not PAGE.exists() or PAGE.read_text() != text:
        raise SystemExit("docs/requirements.md does not say what the tests say: make format")


if __name__ == "__main__":
    main()
