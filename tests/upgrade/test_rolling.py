"""Processes of an earlier commit and of this one share a store under load, while they are killed and replaced: no run
is lost, none succeeds twice, no tick is missed, no limit is passed. First the old ones go, then they come back."""

import asyncio
import signal
from collections import Counter
from collections.abc import Iterable
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path

import pytest

from rota import Run, State
from tests.faults.conftest import store_url as store_url
from tests.faults.test_replicas import ended_runs
from tests.processes import Process
from tests.upgrade.releases import FIRST_FORMAT, source_of

OLD, NEW = "old", "new"
WAYS = {
    "short": [(OLD, NEW), (NEW, NEW), (OLD, NEW)],
    "there and back": [(OLD, OLD), (OLD, NEW), (NEW, NEW), (OLD, NEW)] * 5,
    "back and there": [(NEW, NEW), (OLD, NEW), (OLD, OLD), (OLD, NEW)] * 5,
}
"""Which code the two workers run, and the two submitters, one after the other."""
ROUND = 40
"""Runs that are accepted before the next process is killed."""


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What each version has on PYTHONPATH; nothing for the code that is installed."""
    return {OLD: str(source_of(FIRST_FORMAT, tmp_path_factory.mktemp("old"))), NEW: ""}


class Fleet:
    """Two workers and two submitters. A pair of versions says which code each couple runs."""

    def __init__(self, url: str, calls: Path, sources: dict[str, str], opened: ExitStack) -> None:
        self._env = {"ROTA_URL": url, "ROTA_LEASE": "2", "ROLLING_CALLS": str(calls)}
        self._sources = sources
        self._opened = opened
        self._running: list[tuple[str, Process, Process]] = []
        self._started = 0
        self.accepted: set[str] = set()
        self.kills = 0

    def become(self, versions: tuple[str, str]) -> None:
        """Kill what runs other code, start what is missing, and wait until all have worked."""
        wanted = Counter(versions)
        for couple in list(self._running):
            if wanted[couple[0]]:
                wanted[couple[0]] -= 1
            else:
                self._kill(couple)
        for version in wanted.elements():
            self._running.append(self._start(version))
        for _, _, load in self._running:
            load.wait_for("accepted", len(load.lines) + ROUND)

    def end(self) -> None:
        """Kill everything, and start one worker that does what is left. Wait until it has called two ticks."""
        for couple in list(self._running):
            self._kill(couple)
        self._start_worker(NEW).wait_for("^ticked", 2)

    def _start(self, version: str) -> tuple[str, Process, Process]:
        self._started += 1
        load = self._process(version, "-m", "tests.upgrade.rolling_load", f"{version}{self._started}")
        return version, self._start_worker(version), load

    def _start_worker(self, version: str) -> Process:
        return self._process(version, "-m", "rota", "-A", "tests.upgrade.rolling_app:app", "worker")

    def _process(self, version: str, *command: str) -> Process:
        env = {**self._env, "PYTHONPATH": self._sources[version]}
        return self._opened.enter_context(Process(*command, env=env))

    def _kill(self, couple: tuple[str, Process, Process]) -> None:
        self._running.remove(couple)
        for process in couple[1:]:
            process.signal(signal.SIGKILL)
            assert process.wait() == -signal.SIGKILL, process.output
            self.kills += 1
        self.accepted |= {line.split()[1] for line in couple[2].lines if line.startswith("accepted")}
        complaints = [line for line in couple[1].lines if " ERROR " in line]
        assert not complaints, couple[1].output


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("store_url", "way"),
    [
        *((kind, "short") for kind in ("sqlite", "valkey-9", "postgres-18")),
        *(
            pytest.param(kind, way, marks=pytest.mark.soak)
            for kind in ("sqlite", "valkey-9", "redis-6.2", "postgres-18", "postgres-15")
            for way in ("there and back", "back and there")
        ),
    ],
    indirect=["store_url"],
)
async def test_two_versions_share_a_store_under_load_and_kills(
    store_url: str, way: str, sources: dict[str, str], tmp_path: Path
) -> None:
    calls = tmp_path / "calls"
    with ExitStack() as opened:
        fleet = Fleet(store_url, calls, sources, opened)
        for versions in WAYS[way]:
            await asyncio.to_thread(fleet.become, versions)
        await asyncio.to_thread(fleet.end)
        runs = await ended_runs(store_url, 0)
    check(runs, fleet.accepted, calls.read_text().split("\n"))
    print(f"{len(runs)} runs, {fleet.kills} kills, {sum(run.losses for run in runs)} leases lost")


def check(runs: list[Run], accepted: set[str], calls: Iterable[str]) -> None:
    ended = {run.id: run for run in runs if run.task != "second"}
    assert accepted <= ended.keys(), "a run that was accepted is lost"
    assert {run.state for run in ended.values()} == {State.SUCCEEDED}
    for run in ended.values():
        assert [attempt.outcome for attempt in run.attempts].count("succeeded") == 1, run
    assert max(Counter(filter(None, calls)).values()) == 1, "two calls had one fence"
    keys = Counter(run.key for run in runs if run.task == "once")
    assert set(keys.values()) == {1}, "a unique key was passed"
    spans = sorted((a.claimed_at, a.ended_at) for run in runs if run.task == "alone" for a in run.attempts)
    assert all(first[1] <= second[0] for first, second in pairwise(spans)), "two runs of a task with limit=1 at once"
    ticks = sorted(run.origin.nominal for run in runs if run.task == "second" and run.origin.nominal is not None)
    assert len(ticks) > 1
    assert all(later - earlier == 1 for earlier, later in pairwise(ticks)), "a tick was missed or made twice"
