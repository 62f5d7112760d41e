"""The look for the lanes of a claim costs the same however many runs a lane has."""

import sqlite3
from pathlib import Path

from rota.domain.lifecycle import Succeeded, settlement_of
from rota.store import ClaimRequest
from rota.stores import connect
from rota.stores.sqlite.queries import DUE_OTHERS
from rota.stores.sqlite.statements import BEST_PARKED, LANES
from storekit.contract import new_run

COARSE = 10
"""Instructions of SQLite's machine between two counts."""


def instructions(file: Path, query: str, *parameters: object) -> int:
    counted = 0

    def count() -> int:
        nonlocal counted
        counted += COARSE
        return 0

    connection = sqlite3.connect(file)
    connection.set_progress_handler(count, COARSE)
    given = parameters[0] if parameters and isinstance(parameters[0], dict) else parameters
    connection.execute(query, given).fetchall()
    connection.close()
    return counted


async def test_a_lane_costs_the_same_with_few_and_with_many_runs(tmp_path: Path) -> None:
    file = tmp_path / "rota.db"
    costs: list[tuple[int, int]] = []
    async with connect(f"sqlite:///{file}").open() as store:
        for number in (1, 3000):
            for queue, share, priority in (("default", None, 0), ("default", "a", 0), ("images", None, 3)):
                runs = [new_run(queue=queue, share=share, priority=priority, key="k") for _ in range(number)]
                await store.put(runs)
            costs.append((instructions(file, LANES, '["greet"]', "[]"), instructions(file, BEST_PARKED, "greet", "k")))
    (few, few_parked), (many, many_parked) = costs
    assert 0 < many <= 1.2 * few, "it walked over the runs of a lane"
    assert many_parked <= 1.2 * few_parked


async def test_a_list_by_due_time_costs_the_same_however_many_runs_have_ended(tmp_path: Path) -> None:
    file = tmp_path / "rota.db"
    costs: list[int] = []
    given = {"tasks": '["greet"]', "states": '["queued"]', "at": -1.0, "seq": 0, "wanted": 50}
    async with connect(f"sqlite:///{file}").open() as store:
        for number in (1, 1000):
            await store.put([new_run() for _ in range(number)])
            claim = await store.claim(ClaimRequest("ada", number, ["greet"], number, 60))
            await store.settle([settlement_of(run, Succeeded()) for run in claim.runs])
            costs.append(instructions(file, DUE_OTHERS, given))
    assert 0 < costs[1] <= 1.2 * costs[0], "it walked over the runs that have ended"
