"""A crontab as cron reads it: what it says, what it runs, and what is refused instead of guessed."""

import asyncio
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from rota import Rota
from rota.movein.code import write_code
from rota.movein.crontab import read_crontab
from rota.movein.fires import prove
from rota.movein.plan import Row, Source
from rota.testing import drain

PAGE = r"""
# m h dom mon dow command
MAILTO="ada@example.org"
0 3 * * *  /usr/bin/backup.sh --full
CRON_TZ=America/New_York
GREETING = 'good morning'
*/15 7-22 * * 1-5	cd /srv/app && ./run.py sync
30 2 1 * 1 cat > {out}%Dear $GREETING,%100\% done
@daily true
-0 4 * * sat,sun nice -n 5 /opt/report
@reboot /usr/bin/start
5/15 * * * * echo
0~30 4 * * * echo
0 0 L * * echo
0 0 * * mon-tuesday echo
0 0 30 2 * echo
22-2 * * * * echo
0 5 * * *
"""


@pytest.fixture
def source(tmp_path: Path) -> Source:
    path = tmp_path / "crontab"
    path.write_text(PAGE.replace("{out}", str(tmp_path / "out")))
    return read_crontab(path, "Europe/Paris", "--tz", system=False)


def by_line(source: Source) -> dict[int, Row]:
    return {int(row.where.removeprefix("line ")): row for row in source.rows}


def test_lines_keep_their_times_in_the_zone_that_cron_has(source: Source) -> None:
    assert {row.name: str(row.trigger) for row in source.rows if not row.refused} == {
        "backup": "cron 0 3 * * * Europe/Paris",
        "run": "cron */15 7-22 * * 1-5 America/New_York",
        "cat": "cron 30 2 1 * 1 America/New_York",
        "true": "cron @daily America/New_York",
        "report": "cron 0 4 * * sat,sun America/New_York",
    }
    assert {row.outcome for row in source.rows} == {"same", "refused"}
    assert {(row.timed.overlap, row.timed.catch_up, row.timed.lost) for row in source.rows} == {
        ("allow", "skip", "fail")
    }


def test_what_cron_refuses_or_reads_in_two_ways_is_refused(source: Source) -> None:
    refused = {row.says.rpartition(" ")[0]: row.refused for row in source.rows if row.refused}
    words = {
        "@reboot": "no boot",
        "5/15 * * * *": "two ways: 5 alone, or from 5 on in steps of 15",
        "0~30 4 * * *": "at random",
        "0 0 L * *": "cron itself refuses 'L'",
        "0 0 * * mon-tuesday": "cron itself refuses 'mon-tuesday'",
        "0 0 30 2 *": "never comes",
        "22-2 * * * *": "runs backwards",
        "0 5 * *": "no command",
    }
    assert refused.keys() == words.keys()
    assert all(word in refused[expr] for expr, word in words.items())
    assert all(row.trigger is None for row in source.rows if row.refused)


def test_no_zone_is_guessed(tmp_path: Path) -> None:
    path = tmp_path / "crontab"
    path.write_text("0 3 * * * true\nCRON_TZ=Europe/Paris\n0 4 * * * true\nCRON_TZ=Mars/North\n0 5 * * * true\n")
    first, second, third = read_crontab(path, None, "", system=False).rows
    assert "which zone?" in first.refused
    assert str(second.trigger) == "cron 0 4 * * * Europe/Paris"
    assert "Mars/North" in third.refused


def test_a_user_column_sends_the_line_to_a_worker_of_that_user(tmp_path: Path) -> None:
    path = tmp_path / "crontab"
    path.write_text("17 * * * *\troot\tcd / && run-parts --report /etc/cron.hourly\n@daily www  /srv/rotate\n")
    first, second = read_crontab(path, "UTC", "--tz", system=True).rows
    assert (first.name, first.timed.queue) == ("run-parts", "cron-root")
    assert first.body == ['await shell("cd / && run-parts --report /etc/cron.hourly", user="root")']
    assert (second.name, second.timed.queue) == ("rotate", "cron-www")


def module(source: Source) -> dict[str, Any]:
    made: dict[str, Any] = {}
    exec(compile(write_code(source), "jobs.py", "exec"), made)
    return made


def test_the_code_runs_commands_as_cron_does(source: Source, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROTA_URL", "memory://")
    made = module(source)
    app: Rota = made["app"]
    assert sorted(app.tasks) == sorted(row.name for row in source.rows if not row.refused)

    async def played() -> None:
        async with app:
            assert await (await made["cat"].submit()).result(timeout=10) is None
            run = await made["backup"].submit()
            with pytest.raises(Exception, match=r"exit code 127: .*backup.sh"):
                await run.result(timeout=10)

    asyncio.run(played())
    assert (tmp_path / "out").read_text() == "Dear $GREETING,\n100% done\n", "what is behind % is the input, as it is"


def test_a_command_has_the_small_environment_of_cron(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, out = tmp_path / "crontab", tmp_path / "out"
    path.write_text(f'HELLO="a b"\nHOME={tmp_path}\n0 3 * * * env > {out}; pwd >> {out}\n')
    monkeypatch.setenv("ROTA_URL", "memory://")
    monkeypatch.setenv("SECRET", "x")
    made = module(read_crontab(path, "UTC", "--tz", system=False))
    app: Rota = made["app"]

    async def played() -> None:
        (name,) = app.tasks
        await app.submit(name)
        await drain(app)

    asyncio.run(played())
    lines = out.read_text().splitlines()
    assert lines[-1] == os.path.realpath(tmp_path)
    assert {"HELLO=a b", "PATH=/usr/bin:/bin", "SHELL=/bin/sh"} <= set(lines)
    assert not any(line.startswith("SECRET") for line in lines)


def test_croniter_agrees_for_four_hundred_days(source: Source) -> None:
    now = datetime(2026, 11, 17, tzinfo=UTC)
    proofs = [prove(row, now) for row in source.rows if not row.refused]
    assert all(proof and proof.compared and not proof.unnamed for proof in proofs)
    assert all(proof and proof.until == now + timedelta(days=400) for proof in proofs)


def test_a_difference_that_no_rule_explains_is_found(source: Source) -> None:
    row = next(row for row in source.rows if row.name == "backup")
    monday = read_crontab.__globals__["croniter_fires"]("0 3 * * 1-6", "Europe/Paris")
    wrong = type(row)(**{name: getattr(row, name) for name in row.__struct_fields__} | {"engine": monday})
    proof = prove(wrong, datetime(2026, 11, 17, tzinfo=UTC))
    assert proof is not None
    assert len(proof.unnamed) == 57, "the Sundays"
    assert {each.by for each in proof.unnamed} == {"rota"}
