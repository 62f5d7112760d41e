"""The beat_schedule of a Celery app: its own library reads it, and what cannot be carried over is refused by name."""

from datetime import UTC, datetime

import pytest

from rota import InvalidOptions
from rota.movein.celery_app import read_celery
from rota.movein.code import write_code
from rota.movein.fires import prove
from rota.movein.plan import Row
from tests.movein import celery_shop

NOW = datetime(2026, 11, 17, 9, 30, tzinfo=UTC)


@pytest.fixture(scope="module")
def rows() -> dict[str, Row]:
    return {row.name: row for row in read_celery(celery_shop.app, "shop:app", NOW).rows}


def test_each_entry_is_the_same_differs_or_is_refused(rows: dict[str, Row]) -> None:
    assert {name: row.outcome for name, row in rows.items()} == {
        "nightly": "differs",  # 02:30, which is inside a gap of Paris
        "office": "same",
        "often": "same",
        "spans": "same",
        "first": "same",
        **dict.fromkeys(("sunset", "moody", "late", "over", "odd", "cleanup"), "refused"),
    }
    assert {each.at.date().isoformat() for each in rows["nightly"].differences} == {"2027-03-28"}


def test_times_zones_and_options_are_carried(rows: dict[str, Row]) -> None:
    assert str(rows["office"].trigger) == "cron */20 8,9 * * mon-fri Europe/Paris"
    assert str(rows["first"].trigger) == ("cron 0 3 1-7 * * Europe/Paris and cron 0 3 * * mon Europe/Paris"), (
        "Celery wants both, cron either"
    )
    assert str(rows["often"].trigger).startswith("every 1m30s")
    assert (rows["nightly"].args, rows["often"].kwargs) == ([2, 3], {"a": 1})
    assert (rows["often"].timed.queue, rows["often"].timed.grace) == ("slow", 45.0)
    assert {name: row.timed.lost for name, row in rows.items() if not row.refused} == {
        "nightly": "fail",
        "office": "retry",
        "often": "fail",
        "spans": "fail",
        "first": "retry",
    }, "acks_late"
    assert {row.timed.overlap for row in rows.values() if not row.refused} == {"allow"}
    assert "left out of its options: exchange" in rows["spans"].notes
    assert any("the app has no such task" in note for note in rows["spans"].notes)


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("sunset", "rota knows no sun"),
        ("moody", "rota does not know the schedule Moody"),
        ("late", "countdown=5 moves each start"),
        ("over", "it expired at 2020-01-01"),
        ("odd", "objects of type object is unsupported"),
        ("cleanup", "it removes old results of Celery"),
    ],
)
def test_nothing_is_guessed(rows: dict[str, Row], name: str, why: str) -> None:
    assert why in rows[name].refused


def test_celery_itself_proves_every_crontab(rows: dict[str, Row]) -> None:
    for name in ("nightly", "office", "first"):
        proof = prove(rows[name], NOW, 2000)
        assert proof is not None
        assert (proof.compared > 10, proof.unnamed) == (True, ())


def test_the_code_calls_what_celery_calls(rows: dict[str, Row]) -> None:
    code = write_code(read_celery(celery_shop.app, "shop:app", NOW))
    assert "    shop.add(2, 3)" in code
    assert "    other.job()" in code
    assert "# entry sunset:" in code
    compile(code, "jobs.py", "exec")


def test_only_an_app_of_celery_is_read() -> None:
    with pytest.raises(InvalidOptions, match="is a int, not an app of Celery"):
        read_celery(5, "shop:app", NOW)
