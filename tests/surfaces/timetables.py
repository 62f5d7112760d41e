"""Schedules in the store of a command, put and fired at chosen moments, and an app beside them."""

import sys
from types import ModuleType

import pytest

from rota import Rota
from rota.domain.guards import Guards
from rota.domain.intake import Options
from rota.domain.policy import Policy
from rota.domain.schedule import Schedule
from rota.domain.scheduling import Timed, new_schedule
from rota.domain.ticks import due_tick, with_first_tick
from rota.domain.triggers import Trigger
from rota.store import ClaimRequest, Declared, Report, Store, Tally
from tests.surfaces.called import Called

HOUR = 3600.0


def made(
    id: str, trigger: str = "every 1h", timed: Timed | None = None, owner: str = "", task: str = "greet"
) -> Schedule:
    args = b'{"name":"Ada"}'
    parsed = Trigger.parse(trigger).in_zone("UTC")
    return new_schedule(id, parsed, timed or Timed(), task, args, Policy(), Options(), 0, Guards(), owner)


def declare(rota: Called, *schedules: Schedule, ago: float = 0.0) -> None:
    """Puts them so many seconds ago; what lies longest ago comes first, for the store's clock does not go back."""

    async def put(store: Store) -> list[Declared]:
        now = (await store.declare([])).now
        return (await store.declare([with_first_tick(schedule, now) for schedule in schedules])).items

    assert rota.store(put, skew=-ago) == [Declared.ADDED] * len(schedules)


def fire(rota: Called, ago: float = 0.0) -> None:
    """Fires what is due."""

    async def step(store: Store) -> None:
        stored = await store.rows(Schedule)
        due = [each for each in stored.items if each.fires_at is not None and each.fires_at <= stored.now]
        fired = await store.fire([due_tick(schedule, stored.now) for schedule in due])
        assert all(item.applied for item in fired.items)

    rota.store(step, skew=-ago)


def took(rota: Called, task: str, bucket: int, calls: int = 10) -> None:
    """A worker with four seats reports how long calls took."""
    report = Report(host="here", pid=1, version="1", seats=4, tallies=(Tally(task, durations={bucket: calls}),))

    async def claim(store: Store) -> None:
        await store.claim(ClaimRequest("w", 1, [task], 0, 30.0, report))

    rota.store(claim)


def beside(monkeypatch: pytest.MonkeyPatch, app: Rota) -> None:
    """Makes `-A shop:app` mean this app."""
    module = ModuleType("shop")
    module.__dict__["app"] = app
    monkeypatch.setitem(sys.modules, "shop", module)
    monkeypatch.setenv("ROTA_APP", "shop:app")


def on_terminal(monkeypatch: pytest.MonkeyPatch, width: int = 160) -> None:
    monkeypatch.setattr("rota.cli.render.show.Show.terminal", True)
    monkeypatch.setenv("COLUMNS", str(width))
