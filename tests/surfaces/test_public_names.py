"""The public names of rota: which exist, where they come from, and what `import rota` loads."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import rota

USED = """
Activity Breaker Context Cron DailyAt Every Limit Period Rate Retry Rota UserKey
Discard RetryAfter Snooze TaskError
Bound Chain ChainHandle Decision Depth Event Fact Flow Health Inputs PlanReport Reason Run RunHandle Schedule State
Status Step Task TickOutcome Trigger Using Why
DuplicateTask InvalidArguments InvalidOptions MissingExtra NoStore NotRunning NotSimulated DrainTimeout QueueFull
Refused RotaError RunCancelled RunEnded RunFailed RunNotFound ScheduleNotFound ScheduleTaken SchemaTooNew StoreCorrupt
StoreError StoreUnavailable UnknownTask Unstorable UsageError
"""
"""The names that user code imports or catches. A name leaves this list only with a line in the CHANGELOG."""

LOADED = {"rota"}
"""The modules of rota that `import rota` loads. Everything else is loaded when its name is first used."""


@pytest.mark.parametrize("name", USED.split())
def test_a_name_that_users_write_is_exported(name: str) -> None:
    assert name in rota.__all__
    assert getattr(rota, name).__name__ == name


def test_the_three_lists_of_public_names_agree() -> None:
    tree = ast.parse(Path(rota.__file__).read_text())
    guarded = next(node for node in tree.body if isinstance(node, ast.If))
    imported = {
        name.name: node.module for node in guarded.body if isinstance(node, ast.ImportFrom) for name in node.names
    }

    assert imported == rota._MODULE_OF, "add the name to the imports for type checkers and to _MODULES in rota/__init__"
    assert sorted(imported) == sorted(rota.__all__), "add the name to __all__ in rota/__init__"
    assert set(rota.__all__) <= set(dir(rota))


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'rota' has no attribute 'Nope'"):
        _ = rota.Nope  # type: ignore[attr-defined]


def test_importing_rota_loads_no_module_beside_its_own() -> None:
    program = "import sys; before = set(sys.modules); import rota; print(*set(sys.modules) - before)"
    loaded = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout.split()

    assert {name for name in loaded if name.partition(".")[0] == "rota"} == LOADED
    assert not {"asyncio", "logging", "msgspec", "sqlite3"} & set(loaded), "these are loaded when a name needs them"
