"""Writes docs/requirements.md from the `@requirement(...)` marks of the tests; `--check` fails when it is stale."""

import argparse
import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from tests.requirement import NOT_BUILT, SECTIONS

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "requirements.md"
HEAD = """\
# Requirements

What rota has to do, and the tests that show it. `make format` writes this page from the marks of the tests
(`tests/requirement.py`); edit the marks, not the page. A number is a requirement. A letter is a weakness that
schedulers of this kind often have, and that rota must not have.
"""
NOT_YET = """
## Not built yet

A number that a table above has as well is built in part.
"""


@dataclass(frozen=True)
class Mark:
    """One `@requirement(number, text)` of a test."""

    number: str
    text: str
    path: str
    test: str


@dataclass(frozen=True)
class MarkedTest:
    """A test function, and the marks that it has; it may have none."""

    path: str
    name: str
    marks: tuple[Mark, ...]


def marked_tests(path: str, source: str) -> Iterator[MarkedTest]:
    """Yield the test functions of a module with their marks; `path` is relative to the root of the repository."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
            calls = [call for call in node.decorator_list if isinstance(call, ast.Call)]
            said = [call.args for call in calls if ast.unparse(call.func) == "requirement"]
            marks = (Mark(*_texts(path, node.name, arguments), path, node.name) for arguments in said)
            yield MarkedTest(path, node.name, tuple(marks))


def _texts(path: str, test: str, arguments: list[ast.expr]) -> tuple[str, str]:
    words = [str(ast.literal_eval(argument)) for argument in arguments]
    if len(words) not in (1, 2):
        raise SystemExit(f"{path}::{test}: write @requirement(number) or @requirement(number, text)")
    return words[0], words[1] if len(words) == 2 else ""


def order(number: str) -> tuple[int, int, str]:
    """Sort by section, then the numbers, then the letters."""
    section, place = number.split(".")
    return (int(section), int(place), "") if place.isdecimal() else (int(section), 1000, place)


def mistakes(tests: Iterable[MarkedTest], sections: Mapping[int, str], not_built: Iterable[str]) -> list[str]:
    """Say what is wrong with the marks, one sentence each."""
    tests, missing = list(tests), set(not_built)
    marks = [mark for test in tests for mark in test.marks]
    unreadable = {mark.number for mark in marks if not re.fullmatch(r"\d\.(\d+|[a-z])", mark.number)}
    if unreadable:
        return [f"{number}: not a number like 3.6 or 3.a" for number in sorted(unreadable)]
    said = [*_unmarked(tests), *_texts_of(marks)]
    numbers = {mark.number for mark in marks} | missing
    for section in sections:
        places = [int(number.split(".")[1]) for number in numbers if re.match(rf"{section}\.\d", number)]
        absent = set(range(1, max(places, default=0) + 1)) - set(places)
        said += [f"{section}.{place}: no test shows it, and it is not in NOT_BUILT" for place in sorted(absent)]
    said += [f"{number}: there is no such section" for number in sorted(numbers) if int(number[0]) not in sections]
    return said


def _unmarked(tests: Iterable[MarkedTest]) -> Iterator[str]:
    for test in tests:
        numbers = {mark.number for mark in test.marks}
        if test.path.startswith("tests/acceptance/") and not numbers:
            yield f"{test.path}::{test.name}: say with @requirement what it shows"
        named = re.match(r"test_(\d)_(\d+)_", test.name)
        if named and numbers and f"{named[1]}.{named[2]}" not in numbers:
            yield f"{test.path}::{test.name}: its name says {named[1]}.{named[2]}, its mark does not"


def _texts_of(marks: Iterable[Mark]) -> Iterator[str]:
    for number, group in groupby(sorted(marks, key=lambda mark: order(mark.number)), key=lambda mark: mark.number):
        texts = [mark.text for mark in group if mark.text]
        if len(texts) != 1:
            yield f"{number}: {len(texts)} of its tests say the text, and one has to"
        elif not re.fullmatch(r"[A-Z`].*[^.]\.", texts[0]):
            yield f"{number}: the text is not a sentence with a full stop: {texts[0]}"


def page(tests: Iterable[MarkedTest], sections: Mapping[int, str], not_built: Mapping[str, str]) -> str:
    """Write the page: a table for each section, then what is not built yet."""
    marks = [mark for test in tests for mark in test.marks]
    lines = [HEAD.rstrip()]
    for section, title in sections.items():
        lines += [f"\n## {section} · {title}\n", "| | rota | Shown by |", "|---|---|---|"]
        for number in sorted({mark.number for mark in marks if mark.number.startswith(f"{section}.")}, key=order):
            ours = [mark for mark in marks if mark.number == number]
            text = next(mark.text for mark in ours if mark.text)
            lines.append(f"| {number} | {text} | {'<br>'.join(map(_link, ours))} |")
    if not_built:
        lines += [NOT_YET, "| | |", "|---|---|"]
        lines += [f"| {number} | {not_built[number]} |" for number in sorted(not_built, key=order)]
    return "\n".join(lines) + "\n"


def _link(mark: Mark) -> str:
    return f"[`{mark.path.removeprefix('tests/')}::{mark.test}`](../{mark.path})"


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
    if said := mistakes(tests, SECTIONS, NOT_BUILT):
        raise SystemExit("\n".join(said))
    text = page(tests, SECTIONS, NOT_BUILT)
    if not check:
        PAGE.write_text(text)
    elif not PAGE.exists() or PAGE.read_text() != text:
        raise SystemExit("docs/requirements.md does not say what the tests say: make format")


if __name__ == "__main__":
    main()
