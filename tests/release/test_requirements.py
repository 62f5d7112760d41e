"""The page of requirements is made from the marks of the tests, and wrong marks are named."""

import pytest

from tools.requirements import Mark, MarkedTest, marked_tests, mistakes, page

SECTIONS = {0: "Users", 1: "Schedules"}
SOURCE = """
@requirement("0.1", "A user is served.")
@pytest.mark.parametrize("n", [1, 2])
def test_0_1_a_user(n): ...

@requirement("0.1")
@requirement("0.a", "Nothing is lost.")
async def test_another(): ...

def test_of_nothing(): ...

def no_test(): ...
"""


def marked(test: str, *marks: tuple[str, str], path: str = "tests/acceptance/test_a.py") -> MarkedTest:
    return MarkedTest(path, test, tuple(Mark(number, text, path, test) for number, text in marks))


def test_marks_are_read_from_the_source() -> None:
    path = "tests/acceptance/test_a.py"
    assert list(marked_tests(path, SOURCE)) == [
        marked("test_0_1_a_user", ("0.1", "A user is served.")),
        marked("test_another", ("0.1", ""), ("0.a", "Nothing is lost.")),
        marked("test_of_nothing"),
    ]


def test_a_mark_with_too_many_words_is_refused() -> None:
    with pytest.raises(SystemExit, match=r"test_a\.py::test_x: write @requirement\(number\)"):
        list(marked_tests("tests/test_a.py", '@requirement("0.1", "A.", "B.")\ndef test_x(): ...'))


def test_the_page_has_a_table_for_each_section_numbers_before_letters() -> None:
    tests = [
        marked("test_c", ("1.a", "C is so."), path="tests/test_c.py"),
        marked("test_b", ("0.10", "B is so.")),
        marked("test_a", ("0.2", "A is so.")),
        marked("test_a_too", ("0.2", ""), path="tests/engine/test_b.py"),
    ]
    written = page(tests, SECTIONS, {"1.2": "Later.", "0.3": "Sooner."})
    assert [line for line in written.splitlines() if line.startswith(("## ", "| 0", "| 1"))] == [
        "## 0 · Users",
        "| 0.2 | A is so. | [`acceptance/test_a.py::test_a`](../tests/acceptance/test_a.py)"
        "<br>[`engine/test_b.py::test_a_too`](../tests/engine/test_b.py) |",
        "| 0.10 | B is so. | [`acceptance/test_a.py::test_b`](../tests/acceptance/test_a.py) |",
        "## 1 · Schedules",
        "| 1.a | C is so. | [`test_c.py::test_c`](../tests/test_c.py) |",
        "## Not built yet",
        "| 0.3 | Sooner. |",
        "| 1.2 | Later. |",
    ]


def test_good_marks_have_no_mistakes() -> None:
    tests = [marked("test_0_1_a", ("0.1", "A is so.")), marked("test_b", ("0.1", ""), ("0.3", "B is so."))]
    assert mistakes(tests, SECTIONS, ["0.2", "0.3"]) == []
    assert mistakes([marked("test_elsewhere", path="tests/engine/test_b.py")], SECTIONS, []) == []


@pytest.mark.parametrize(
    ("test", "said"),
    [
        (marked("test_b", ("0.3", "B is so.")), "0.2: no test shows it, and it is not in NOT_BUILT"),
        (marked("test_b"), "tests/acceptance/test_a.py::test_b: say with @requirement what it shows"),
        (marked("test_b", ("0.2", "")), "0.2: 0 of its tests say the text, and one has to"),
        (marked("test_b", ("0.1", "A is different.")), "0.1: 2 of its tests say the text, and one has to"),
        (marked("test_b", ("0.2", "no sentence")), "0.2: the text is not a sentence with a full stop: no sentence"),
        (marked("test_b", ("2.1", "B is so.")), "2.1: there is no such section"),
        (marked("test_b", ("0-2", "B is so.")), "0-2: not a number like 3.6 or 3.a"),
        (
            marked("test_0_3_b", ("0.2", "B is so.")),
            "tests/acceptance/test_a.py::test_0_3_b: its name says 0.3, its mark does not",
        ),
    ],
)
def test_a_wrong_mark_is_named(test: MarkedTest, said: str) -> None:
    assert mistakes([marked("test_0_1_a", ("0.1", "A is so.")), test], SECTIONS, []) == [said]
