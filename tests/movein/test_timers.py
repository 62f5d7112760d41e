"""Timers of systemd: their grammar, held to systemd itself, and what is refused instead of guessed."""

import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random

import pytest

from rota import InvalidOptions
from rota.movein.calendar import SHORTHANDS, Event, calendar_engine, calendar_model, read_event, walk
from rota.movein.code import write_code
from rota.movein.fires import prove
from rota.movein.plan import Row
from rota.movein.timers import read_timers
from tests.movein.randoms import ZONES, number

NOW = datetime(2026, 11, 17, 9, 30, tzinfo=UTC)
NAMES = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
judged = pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not here")


def timer(tmp_path: Path, lines: str, tz: str | None = "Europe/Paris") -> Row:
    (tmp_path / "report.timer").write_text(f"[Unit]\nDescription=x\n\n[Timer]\n{lines}\n\n[Install]\nPersistent=no\n")
    (row,) = read_timers([tmp_path], NOW, tz, "--tz").rows
    return row


@pytest.mark.parametrize(
    ("event", "trigger"),
    [
        ("daily", "cron 0 0 * * * Europe/Paris dst skip"),
        ("Mon..Fri 22:30", "cron 30 22 * * mon-fri Europe/Paris dst skip"),
        ("Sat,Sun *-*-* 8..18/2:00 UTC", "cron 0 8,10,12,14,16,18 * * sat,sun UTC dst skip"),
        ("*:0/15", "cron */15 * * * * Europe/Paris dst skip"),
        ("*-*-01,15 02:00:30 Asia/Tokyo", "cron 30 0 2 1,15 * * Asia/Tokyo dst skip"),
        ("*-*~01 12:00", "cron 0 12 L * * Europe/Paris dst skip"),
        ("Mon *-*-1..7 3:00", "cron 0 3 1-7 * * Europe/Paris dst skip and cron 0 3 * * mon Europe/Paris dst skip"),
        ("quarterly", "cron 0 0 1 */3 * Europe/Paris dst skip"),
        ("12-25 10:00", "cron 0 10 25 12 * Europe/Paris dst skip"),
    ],
)
def test_an_event_of_a_calendar_becomes_cron(tmp_path: Path, event: str, trigger: str) -> None:
    row = timer(tmp_path, f"OnCalendar={event}")
    assert (row.refused, str(row.trigger)) == ("", trigger)


def test_several_events_are_one_schedule_and_an_empty_one_takes_back_those_before(tmp_path: Path) -> None:
    row = timer(
        tmp_path, "OnCalendar=weekly\nOnCalendar=\n# no\nOnCalendar=10:00\nOnCalendar=Sun \\\n11:00\nPersistent=on"
    )
    assert str(row.trigger) == "cron 0 10 * * * Europe/Paris dst skip or cron 0 11 * * sun Europe/Paris dst skip"
    assert (row.timed.overlap, row.timed.catch_up, row.timed.lost) == ("skip", "latest", "fail")
    assert timer(tmp_path, "OnCalendar=10:00").timed.catch_up == "skip"


@pytest.mark.parametrize(
    ("lines", "why"),
    [
        ("OnBootSec=5min", "OnBootSec counts from a boot"),
        ("OnCalendar=daily\nOnUnitActiveSec=1h", "OnUnitActiveSec counts from a boot or from the last run"),
        ("OnCalendar=daily\nOnTimezoneChange=yes", "rota hears of no change"),
        ("OnCalendar=daily\nPersistent=perhaps", "systemd itself refuses Persistent=perhaps"),
        ("OnCalendar=daily\nUnit=a b", "systemd itself refuses the unit 'a b'"),
        ("Persistent=true", "it has no OnCalendar"),
        ("OnCalendar=@1893456000", "is one instant"),
        ("OnCalendar=*-*~03", "counts from the end of a month"),
        ("OnCalendar=27-1-1", "write years with four digits"),
        ("OnCalendar=10:00:00.5", "parts of a second"),
        ("OnCalendar=22..2:00", "numbers from 0 to 23, upwards"),
        ("OnCalendar=*:40/30", "numbers from 0 to 59, upwards"),
        ("OnCalendar=0/20:00", "lose times of '0/20': write the numbers out"),
        ("OnCalendar=Wed *:2/18", "lose times of '2/18': write the numbers out"),
        ("OnCalendar=Sat..Mon", "its week ends on Sunday"),
        ("OnCalendar=Xyz 10:00", "'Xyz': it is no weekday"),
        ("OnCalendar=10:00 Mars/North", "Mars/North"),
        ("OnCalendar=*-02-30", "never comes"),
        ("OnCalendar=1-1 10:00 11:00", "what is '11:00'?"),
    ],
)
def test_nothing_is_guessed(tmp_path: Path, lines: str, why: str) -> None:
    assert why in timer(tmp_path, lines).refused


def test_an_event_without_a_zone_needs_that_of_the_machine(tmp_path: Path) -> None:
    assert "give --tz" in timer(tmp_path, "OnCalendar=daily", tz=None).refused
    assert timer(tmp_path, "OnCalendar=daily UTC", tz=None).tz == "UTC"


def test_the_code_starts_the_service_and_waits_for_its_end(tmp_path: Path) -> None:
    timer(tmp_path, "OnCalendar=daily\nUnit=nightly@a.service\nRandomizedDelaySec=10m\nAccuracySec=1s\nWakeSystem=1")
    source = read_timers([tmp_path / "report.timer"], NOW, "UTC", "--tz")
    code = write_code(source)
    assert '    await shell("systemctl start --wait nightly@a.service")\n' in code
    compile(code, "jobs.py", "exec")
    assert [note.partition(":")[0].partition(" ")[0] for note in source.rows[0].notes] == [
        "RandomizedDelaySec=10m",
        "AccuracySec",
        "WakeSystem",
    ]


def test_files_that_are_not_there_are_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidOptions, match=r"there is no \*\.timer"):
        read_timers([tmp_path], NOW, None, "")
    with pytest.raises(InvalidOptions, match=r"none\.timer: No such file"):
        read_timers([tmp_path / "none.timer"], NOW, None, "")


def component(chance: Random, low: int, high: int, kinds: str = "nrls*") -> str:
    first, second = sorted(number(chance, low, high) for _ in range(2))
    match chance.choice(kinds):
        case "r":
            return f"{first}..{second}"
        case "l":
            return ",".join(str(number(chance, low, high)) for _ in range(3))
        case "s":
            step = number(chance, 1, max(1, (high - first) // 2))
            return f"{first}..{second}/{step}" if chance.random() < 0.5 or first > high - 2 else f"{first}/{step}"
        case "n":
            return str(first)
        case _:
            return "*"


def weekdays(chance: Random) -> str:
    first, second = sorted(number(chance, 0, 6) for _ in range(2))
    return chance.choice(
        ["", "", NAMES[first], f"{NAMES[first]},{NAMES[second].lower()}", f"{NAMES[first]}..{NAMES[second]}"]
    )


def event(chance: Random) -> str:
    if chance.random() < 0.1:
        return chance.choice(sorted(SHORTHANDS))
    year = chance.choice(["", "", "*-", "2027-", "2026..2028-"])
    day = chance.choice(["-" + component(chance, 1, 31, "nrls***"), "~01"]) if chance.random() < 0.9 else "-*"
    date = f"{year}{component(chance, 1, 12, 'nrls****')}{day}"
    minute = component(chance, 0, 59, "nnnls")
    time = f"{component(chance, 0, 23)}:{minute}{chance.choice(['', '', ':30'])}"
    parts = [weekdays(chance), *chance.choice([[date, time], [date, time], [time], [date]])]
    return " ".join(filter(None, parts))


@judged
@pytest.mark.parametrize(
    ("count", "most"), [pytest.param(20, 100, id="few"), pytest.param(1000, 1000, marks=pytest.mark.soak, id="many")]
)
def test_random_events_come_as_systemd_says(tmp_path: Path, count: int, most: int, search_seed: int) -> None:
    chance, proven = Random(search_seed), 0
    for _ in range(count):
        row = timer(tmp_path, f"OnCalendar={event(chance)}", chance.choice(ZONES))
        if row.refused:
            assert "never comes" in row.refused or "write the numbers out" in row.refused, row
            continue
        proof = prove(row, NOW, most)
        assert proof is not None
        assert not proof.unnamed, (row.says, str(row.trigger), row.tz, proof.unnamed[:3])
        proven += 1
    assert proven > count * 0.5


@judged
def test_a_proof_that_systemd_cannot_give_says_why() -> None:
    engine = calendar_engine(Event(read_event("10:00", "UTC").sets, "UTC", "25:00"))
    assert engine is not None
    with pytest.raises(InvalidOptions, match="OnCalendar=25:00: Failed to parse calendar specification"):
        list(engine(NOW, NOW + timedelta(days=1)))


@judged
def test_a_time_in_a_gap_is_left_out_and_the_second_pass_of_an_hour_too(tmp_path: Path) -> None:
    found, program = read_event("*:0/30", "Europe/Paris"), shutil.which("systemd-analyze")
    model = calendar_model(found)
    assert program is not None
    for night, count in ((datetime(2027, 3, 27, 22, tzinfo=UTC), 18), (datetime(2027, 10, 30, 22, tzinfo=UTC), 16)):
        window = night, night + timedelta(hours=9)
        assert list(model(*window)) == list(walk(program, found, *window))
        assert len(list(model(*window))) == count
    row = timer(tmp_path, "OnCalendar=*:0/30")
    assert [(each.at.isoformat(), each.by) for each in row.differences] == [
        ("2027-10-31T01:00:00+00:00", "rota"),
        ("2027-10-31T01:30:00+00:00", "rota"),
    ]
    assert timer(tmp_path, "OnCalendar=02:30").outcome == "same"
