"""The periodic tasks of a Huey: when they run, what they call, and what is refused instead of guessed."""

from datetime import UTC, datetime
from random import Random
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from huey import MemoryHuey, crontab

from rota import InvalidOptions
from rota.movein.code import write_code
from rota.movein.fires import AROUND, clock_changes, fires_of, prove
from rota.movein.huey_app import read_huey
from rota.movein.plan import Row
from tests.movein import huey_shop
from tests.movein.randoms import ZONES, expression

NOW = datetime(2026, 11, 17, 9, 30, tzinfo=UTC)


@pytest.fixture(scope="module")
def rows() -> dict[str, Row]:
    return {row.name: row for row in read_huey(huey_shop.app, "shop:app", NOW).rows}


def test_days_and_weekdays_have_to_match_and_sunday_is_0_and_7(rows: dict[str, Row]) -> None:
    assert set(rows) == {"nightly", "first_monday", "never", "own", "asks", "hidden"}
    assert str(rows["nightly"].trigger) == "cron 30 2 * * sun UTC dst each"
    first = "cron */20 0-2,22-23 1-7 * * UTC dst each and cron */20 0-2,22-23 * * mon UTC dst each"
    assert str(rows["first_monday"].trigger) == first
    timed = rows["nightly"].timed
    assert (timed.overlap, timed.catch_up, timed.lost) == ("allow", "skip", "fail")
    assert rows["nightly"].notes == ["default_retries=3: give the task retry="]


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("never", "never comes"),
        ("own", "a function of your own decides when it runs"),
        ("asks", "context=True: its function wants the task of Huey"),
        ("hidden", "its function is inside another one"),
    ],
)
def test_nothing_is_guessed(rows: dict[str, Row], name: str, why: str) -> None:
    assert why in rows[name].refused


def test_the_zone_is_utc_or_that_of_the_machine_or_nothing_is_said() -> None:
    (paris,) = read_huey(huey_shop.local, "shop:local", NOW, "Europe/Paris").rows
    assert str(paris.trigger) == "cron 15 2 * * * Europe/Paris dst each"
    (unknown,) = read_huey(huey_shop.local, "shop:local", NOW).rows
    assert "give --tz" in unknown.refused


def test_the_code_calls_the_function_and_enqueues_nothing() -> None:
    code = write_code(read_huey(huey_shop.app, "shop:app", NOW))
    assert "    tests.movein.huey_shop.nightly.call_local()\n" in code
    compile(code, "jobs.py", "exec")
    assert huey_shop.nightly.call_local() == "done"
    plain = write_code(read_huey(huey_shop.local, "shop:local", NOW, "UTC"))
    assert "    tests.movein.huey_shop.bare()\n" in plain


def test_only_a_huey_is_read() -> None:
    with pytest.raises(InvalidOptions, match="is a int, not a Huey"):
        read_huey(5, "shop:app", NOW)


def fields(chance: Random) -> dict[str, str]:
    minute, hour, day, month, weekday = expression(chance).split()
    wrapped = chance.choice([hour, hour, f"{chance.randint(12, 23)}-{chance.randint(0, 11)}/{chance.randint(1, 3)}"])
    named = chance.choice([weekday, weekday, "1-5", "6-2", "7"])
    return {"minute": minute, "hour": wrapped, "day": day, "month": month, "day_of_week": named}


@pytest.mark.parametrize(
    ("count", "most"), [pytest.param(40, 300, id="few"), pytest.param(1000, 300, marks=pytest.mark.soak, id="many")]
)
def test_random_crontabs_fire_as_huey_says_also_when_clocks_change(count: int, most: int, search_seed: int) -> None:
    chance, proven = Random(search_seed), 0
    for number in range(count):
        app: Any = MemoryHuey(f"shop {number}", utc=False)
        app.periodic_task(crontab(**fields(chance), strict=True))(huey_shop.bare)
        (row,) = read_huey(app, "shop:app", NOW, chance.choice(ZONES)).rows
        if row.refused:
            assert "never comes" in row.refused, row
            continue
        proof = prove(row, NOW, most)
        assert proof is not None
        assert not proof.unnamed, (row.says, str(row.trigger), proof.unnamed[:3])
        proven += 1
        assert row.trigger is not None
        assert row.engine is not None
        for change in clock_changes(row.tz, NOW, datetime(2027, 12, 1, tzinfo=UTC))[:2]:
            window = change.at - AROUND, change.at + AROUND
            assert list(fires_of(row.trigger, *window)) == list(row.engine(*window)), (row.says, ZoneInfo(row.tz))
    assert proven > count * 0.7
