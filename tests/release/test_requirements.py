"""The page of requirements is made from the table and the marks of the tests, and wrong marks are named."""

import pytest

from tests.requirement import REQUIREMENTS, Requirement
from tests.requirement import SECTIONS as ALL_SECTIONS
from tools.requirements import MarkedTest, all_tests, marked_tests, mistakes, page

SECTIONS = {0: "Users", 1: "Schedules"}
SOURCE = """
@requirement("0.1")
@pytest.mark.parametrize("n", [1, 2])
def test_0_1_a_user(n): ...

@requirement("0.1")
@requirement("0.a")
async def test_another(): ...

def test_of_nothing(): ...

def no_test(): ...
"""


def marked(test: str, *numbers: str, path: str = "tests/acceptance/test_a.py") -> MarkedTest:
    return MarkedTest(path, test, numbers)


def test_marks_are_read_from_the_source() -> None:
    path = "tests/acceptance/test_a.py"
    assert list(marked_tests(path, SOURCE)) == [
        marked("test_0_1_a_user", "0.1"),
        marked("test_another", "0.1", "0.a"),
        marked("test_of_nothing"),
    ]


def test_a_mark_with_a_text_is_refused() -> None:
    with pytest.raises(SystemExit, match=r"test_a\.py::test_x: write @requirement\(number\)"):
        list(marked_tests("tests/test_a.py", '@requirement("0.1", "A.")\ndef test_x(): ...'))


def test_the_page_has_a_table_for_each_section_numbers_before_letters() -> None:
    tests = [
        marked("test_c", "1.a", path="tests/test_c.py"),
        marked("test_b", "0.10"),
        marked("test_a", "0.2"),
        marked("test_a_too", "0.2", path="tests/engine/test_b.py"),
    ]
    table = {
        "1.a": Requirement("C is so."),
        "1.2": Requirement(not_yet="Later."),
        "0.10": Requirement("B is so.", not_yet="Sooner."),
        "0.2": Requirement("A is so."),
    }
    written = page(tests, SECTIONS, table)
    assert [line for line in written.splitlines() if line.startswith(("## ", "| 0", "| 1"))] == [
        "## 0 · Users",
        "| 0.2 | A is so. | [`acceptance/test_a.py::test_a`](../tests/acceptance/test_a.py)"
        "<br>[`engine/test_b.py::test_a_too`](../tests/engine/test_b.py) |",
        "| 0.10 | B is so. | [`acceptance/test_a.py::test_b`](../tests/acceptance/test_a.py) |",
        "## 1 · Schedules",
        "| 1.a | C is so. | [`test_c.py::test_c`](../tests/test_c.py) |",
        "## Not built yet",
        "| 0.10 | Sooner. |",
        "| 1.2 | Later. |",
    ]


TABLE = {"0.1": Requirement("A is so."), "0.2": Requirement(not_yet="B is so.")}


def test_good_marks_have_no_mistakes() -> None:
    tests = [marked("test_0_1_a", "0.1"), marked("test_elsewhere", path="tests/engine/test_b.py")]
    assert list(mistakes(tests, SECTIONS, TABLE)) == []


@pytest.mark.parametrize(
    ("test", "wrong"),
    [
        (marked("test_b"), "tests/acceptance/test_a.py::test_b: say with @requirement what it shows"),
        (marked("test_b", "0.2"), "0.2: a test shows it, but the table does not say what is built"),
        (
            marked("test_b", "0.3"),
            "tests/acceptance/test_a.py::test_b: the table of tests/requirement.py has no 0.3",
        ),
        (
            marked("test_0_3_b", "0.1"),
            "tests/acceptance/test_a.py::test_0_3_b: its name says 0.3, its mark does not",
        ),
    ],
)
def test_a_wrong_mark_is_named(test: MarkedTest, wrong: str) -> None:
    assert list(mistakes([marked("test_0_1_a", "0.1"), test], SECTIONS, TABLE)) == [wrong]


@pytest.mark.parametrize(
    ("number", "row", "wrong"),
    [
        ("0.3", Requirement("B is so."), "0.3: no test shows it"),
        ("0.3", Requirement(not_yet="no sentence"), "0.3: the text is not a sentence with a full stop: no sentence"),
        ("0-3", Requirement(not_yet="B is so."), "0-3: not a number like 3.6 or 3.a, or there is no such section"),
        ("2.1", Requirement(not_yet="B is so."), "2.1: not a number like 3.6 or 3.a, or there is no such section"),
    ],
)
def test_a_wrong_row_is_named(number: str, row: Requirement, wrong: str) -> None:
    assert list(mistakes([marked("test_0_1_a", "0.1")], SECTIONS, TABLE | {number: row})) == [wrong]


def test_no_marked_test_can_be_deleted_without_a_failing_lint() -> None:
    tests = all_tests()
    whole = page(tests, ALL_SECTIONS, REQUIREMENTS)
    assert {number for test in tests for number in test.numbers} == {
        number for number, row in REQUIREMENTS.items() if row.built
    }
    for test in tests:
        if test.numbers:
            others = [other for other in tests if other != test]
            assert page(others, ALL_SECTIONS, REQUIREMENTS) != whole, test
            alone = [number for number in test.numbers if not any(number in other.numbers for other in others)]
            assert list(mistakes(others, ALL_SECTIONS, REQUIREMENTS)) == [f"{n}: no test shows it" for n in alone]
