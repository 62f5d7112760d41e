"""Two processes hammering one SQLite file: no `database is locked` reaches a user, no run is lost or doubled."""

import json
from pathlib import Path

import pytest

from rota import State
from rota.store import RunQuery
from rota.stores.sqlite import SqliteBackend
from tests.processes import Process


@pytest.mark.parametrize("seconds", [3, pytest.param(30, marks=pytest.mark.soak)])
async def test_two_processes_share_one_file(tmp_path: Path, seconds: int) -> None:
    backend = SqliteBackend(tmp_path / "rota.db")
    command = ["-m", "tests.faults.hammer", backend.url, str(seconds)]
    with Process(*command) as one, Process(*command) as two:
        assert (one.wait(), two.wait()) == (0, 0), one.output + two.output
    done = [json.loads(process.lines[-1]) for process in (one, two)]
    submitted, applied = sum(d["submitted"] for d in done), sum(d["applied"] for d in done)
    assert min(d["applied"] for d in done) > 0, "both took part"
    assert sum(d["refused"] for d in done) == 0

    async with backend.open() as store:
        succeeded = fences = 0
        cursor: str | None = None
        waiting = 0
        while True:
            page = await store.runs(RunQuery(limit=1000, cursor=cursor))
            succeeded += sum(run.state is State.SUCCEEDED for run in page.runs)
            waiting += sum(run.state is State.QUEUED for run in page.runs)
            fences += sum(run.fence for run in page.runs)
            cursor = page.cursor
            if cursor is None:
                break
    assert succeeded == applied, "each completion is recorded once"
    assert succeeded + waiting == submitted, "none is lost, none is running: both settled what they claimed"
    assert fences == applied, "none was claimed twice"
