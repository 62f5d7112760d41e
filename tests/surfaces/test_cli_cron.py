"""`rota cron`: a trigger explained, in each form, and what is wrong with one that is none."""

import subprocess
from pathlib import Path

import pytest

from tests.surfaces.called import Called

SPRING = ("--tz", "Europe/Paris", "--from", "2027-03-27T00:00")


def test_a_trigger_is_told_in_words_and_with_its_next_fires(rota: Called) -> None:
    told = rota.json("cron", "*/15  7-22 * * *", *SPRING, "--count", "2")

    assert told == {
        "text": "cron */15 7-22 * * * Europe/Paris",
        "words": "every 15 minutes from 07:00 to 22:45, Paris time",
        "zone": "Europe/Paris",
        "from": "2027-03-26T23:00:00.000000Z",
        "fires": [
            {
                "weekday": "Saturday",
                "local": "2027-03-27T07:00:00+01:00",
                "utc": "2027-03-27T06:00:00.000000Z",
                "left": 25_200.0,
            },
            {
                "weekday": "Saturday",
                "local": "2027-03-27T07:15:00+01:00",
                "utc": "2027-03-27T06:15:00.000000Z",
                "left": 26_100.0,
            },
        ],
        "findings": [],
    }


def test_fires_are_followed_through_a_clock_change(rota: Called) -> None:
    told = rota.json("cron", "30 2 * * *", *SPRING, "--count", "3")

    assert [fire["local"] for fire in told["fires"]] == [
        "2027-03-27T02:30:00+01:00",
        "2027-03-28T03:00:00+02:00",
        "2027-03-29T02:30:00+02:00",
    ]
    assert [finding["code"] for finding in told["findings"]] == ["clock-gap", "clock-fold"]
    assert "there is no 02:30: rota fires at 03:00 instead" in told["findings"][0]["message"]
    assert told["findings"][0]["level"] == "warning"
    assert told["findings"][0]["hint"]


def test_a_pipe_gets_the_fires_and_the_findings_apart(rota: Called) -> None:
    out = rota("cron", "*/7 * * * *", "--from", "2027-01-01T00:50", "--count", "2")

    assert out.splitlines() == [
        "weekday\tlocal\tutc\tleft",
        "Friday\t2027-01-01T00:56:00+00:00\t2027-01-01T00:56:00.000000Z\t360.0",
        "Friday\t2027-01-01T01:00:00+00:00\t2027-01-01T01:00:00.000000Z\t600.0",
    ]
    assert rota.err.startswith("warning: */7 in the minute field is uneven: minute 0 comes only 4 minutes after")
    assert rota.err.count("\n") == 1


def test_a_terminal_gets_it_all_in_one_view(rota: Called, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rota.cli.render.show.Show.terminal", True)
    monkeypatch.setenv("COLUMNS", "110")

    out = rota("cron", "30 2 * * *", *SPRING, "--count", "1")

    words, text, blank, header, fire, gap, *findings = out.splitlines()
    assert words == "every day at 02:30, Paris time"
    assert text == "cron 30 2 * * * Europe/Paris"
    assert (blank, gap) == ("", "")
    assert header.split() == ["day", "local", "UTC", "left"]
    assert fire.split("  ") == [
        "Saturday",
        "2027-03-27 02:30:00+01:00",
        "2027-03-27 01:30:00",
        "in 2 h 30 m",
    ]
    assert findings[0].startswith("warning  On 2027-03-28 the clock in Europe/Paris goes forward")
    assert any(line.strip().startswith("→ Choose a time before 02:00") for line in findings)
    assert rota.err == ""


@pytest.mark.parametrize(
    ("words", "text", "first"),
    [
        (["every", "15m"], "every 15m", "2027-01-01T12:15:00+00:00"),
        (["daily 09:00 Asia/Tokyo"], "daily 09:00 Asia/Tokyo", "2027-01-02T09:00:00+09:00"),
        (["weekly", "mon,thu", "09:00"], "weekly mon,thu 09:00", "2027-01-04T09:00:00+00:00"),
        (["monthly -1 23:30"], "monthly -1 23:30", "2027-01-31T23:30:00+00:00"),
        (["at 2027-12-24T18:00:00Z"], "at 2027-12-24T18:00:00Z", "2027-12-24T18:00:00+00:00"),
        (["@hourly"], "cron @hourly", "2027-01-01T13:00:00+00:00"),
        (
            ["daily 12:00 Asia/Tokyo excluding cron * * * * sat"],
            "daily 12:00 Asia/Tokyo excluding cron * * * * sat",
            "2027-01-03T12:00:00+09:00",
        ),
    ],
)
def test_any_trigger_can_be_asked_about(rota: Called, words: list[str], text: str, first: str) -> None:
    told = rota.json("cron", *words, "--from", "2027-01-01T12:00:00Z", "--count", "1")

    assert (told["text"], told["fires"][0]["local"]) == (text, first)


def test_fires_are_shown_in_the_zone_that_is_asked_for(rota: Called) -> None:
    told = rota.json("cron", "daily 09:00 Asia/Tokyo", *SPRING, "--count", "1")

    assert told["text"] == "daily 09:00 Asia/Tokyo"
    assert told["fires"][0]["local"] == "2027-03-27T01:00:00+01:00"


def test_days_are_judged_by_the_zone_that_is_asked_for(rota: Called) -> None:
    told = rota.json("cron", "every", "1d", *SPRING)

    assert [finding["code"] for finding in told["findings"]] == ["drift"]


def test_what_never_fires_says_so(rota: Called) -> None:
    past = rota.json("cron", "at 2020-01-01T00:00:00Z")
    nothing = rota.json("cron", "daily 09:00 excluding daily 09:00", "--tz", "UTC")

    assert (past["fires"], [finding["code"] for finding in past["findings"]]) == ([], ["past"])
    assert (nothing["fires"], [finding["code"] for finding in nothing["findings"]]) == ([], ["never"])


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["0 25 * * *"], "cron '0 25 * * *': hour field '25': 25 is not 0 to 23"),
        (["1,2,99 * * * *"], "minute field '1,2,99': 99 is not 0 to 59"),
        (["0 0 30 2 *"], "the day and month fields name a date that never comes"),
        (["* * *"], "has 3 fields; expected 5 or 6: minute hour day month weekday"),
        (["0 9 * * * Europe/Pari"], "there is no time zone 'Europe/Pari'; did you mean Europe/Paris"),
        (["0 9 * * *", "--tz", "Pari"], "there is no time zone 'Pari'; did you mean Europe/Paris"),
        (["every", "soon"], "'every soon': 'soon' is not a duration"),
        (["sometimes"], "'sometimes' is no trigger; expected one of: every 15m"),
        (["@daily", "--from", "soon"], "--from soon: not an ISO 8601 time; write it like 2026-11-15T09:00"),
        (["@daily", "--from", "0001-01-01T00:00"], "--from 0001-01-01T00:00: a year from 1970 to 8999"),
        (["@daily", "--count", "1001"], "--count 1001: from 1 to 1000"),
        (["@daily", "--count", "0"], "--count 0: from 1 to 1000"),
    ],
)
def test_what_cannot_be_read_is_one_sentence_that_names_the_place(
    rota: Called, arguments: list[str], says: str
) -> None:
    assert rota("cron", *arguments, code=2) == ""
    assert rota.err.startswith("rota: ")
    assert rota.err.count("\n") == 1
    assert says in rota.err


def test_no_store_is_opened_for_it(rota: Called, tmp_path: Path) -> None:
    (tmp_path / "rota.db").unlink()
    rota("cron", "@daily")

    assert sorted(path.name for path in tmp_path.iterdir()) == ["rota.toml"]


def test_bash_completes_it(rota: Called, tmp_path: Path) -> None:
    script = tmp_path / "rota.bash"
    script.write_text(rota("completion", "bash"))

    asked = f"source {script}; COMP_WORDS=(rota cr); COMP_CWORD=1; _rota; echo ${{COMPREPLY[@]}}"
    done = subprocess.run(["bash", "--norc", "-c", asked], capture_output=True, text=True, timeout=60, check=False)

    assert (done.stdout, done.stderr) == ("cron\n", "")
