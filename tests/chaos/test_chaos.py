"""A short chaos run on each store; `make chaos` plays longer ones."""

from pathlib import Path

import pytest

from tests.chaos.places import StoreName
from tests.chaos.play import play

SECONDS, SEED = 20.0, 11


@pytest.mark.soak
@pytest.mark.parametrize("store", ["sqlite", "redis", "postgres"])
def test_every_promise_holds_under_chaos(store: StoreName, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CHAOS_HISTORY", str(tmp_path / "history"))  # restored when the test ends
    assert play(store, SECONDS, SEED, tmp_path).problems == []
