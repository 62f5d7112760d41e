"""A mistyped name is answered with the known one that it resembles."""

from rota.domain.text import closest, did_you_mean

TASKS = ["resize", "report", "mail"]


def test_the_most_similar_name_is_suggested_whatever_its_case() -> None:
    assert did_you_mean("Resise", TASKS) == "; did you mean resize?"
    assert did_you_mean("RESIZE", ["Resize"]) == "; did you mean Resize?"


def test_a_name_that_resembles_none_gets_the_other_words() -> None:
    assert did_you_mean("xyz", TASKS) == ""
    assert did_you_mean("xyz", TASKS, "; there are three") == "; there are three"


def test_several_names_come_with_the_most_similar_first() -> None:
    assert closest("reporz", ["reports", "report", "mail"], most=2) == ["report", "reports"]
    assert closest("reporz", TASKS, cutoff=0.9) == []
