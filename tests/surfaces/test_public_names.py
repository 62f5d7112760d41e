"""The public names of rota: which exist, where they come from, and what `import rota` loads."""

import ast
import inspect
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import get_args, get_origin, get_type_hints

import pytest

import rota
import rota.store

USED = """
Activity Breaker Context Cron DailyAt Every Limit Period Rate Retry Rota UserKey Discard RetryAfter Snooze TaskError
Bound Chain ChainHandle Decision Depth Ended Event Fact Flow Health Inputs PlanReport Reason Run RunHandle Schedule
State Status Step Task TaskOptions TickOutcome Submission Trigger Using Why Backend Client Note Portal Schedules
UserParts DuplicateTask InvalidArguments InvalidOptions MissingExtra NoStore NotRunning NotSimulated DrainTimeout
QueueFull Refused RotaError RunCancelled RunEnded RunFailed RunNotFound ScheduleNotFound ScheduleTaken SchemaTooNew
StoreCorrupt StoreError StoreUnavailable UnknownTask Unstorable UsageError WorkerNotFound Workers Fence LeaseLost
CallArgument Depends IdConflict Failure Retention ScheduleChanged Each FailedChild FailedChildren Fanned Results
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


ATTRIBUTES = {
    "Rota": """
        backend before_submit bound_to clear client current dependency_overrides depths events flow flows freeze
        handle health lease lease_sync on override pause plan plan_sync portal published resume run running runs
        schedules settings start start_sync status stop stop_sync submit submit_many task tasks thaw touch undo why
        workers
    """,
    "Task": "aliases bind description each enabled fn handle map name submit submit_sync touch try_ using",
    "Using": "bind each map submit submit_sync",
    "Bound": "submit submit_sync task",
    "Chain": "submit submit_sync",
    "Flow": """
        backfill backfill_sync downstream name on_failure once period recheck recheck_sync rerun rerun_sync reset
        reset_sync start start_sync status status_sync step steps wait wait_sync
    """,
    "Client": """
        all_rows all_runs audit backend before_submit close control counted declare depths direct edit ended ended_here
        event_news events explain fan fire freeze mark news now observe override pages patience portal prepared put
        refusal rows run runs
        signature_of stats store submit touch trace_create try_put
    """,
    "Schedules": """
        backfill declare delete get list pause prune put put_many reconcile resume run_now seen set_next ticks
    """,
}
"""What a user's editor offers on these objects. rota's own packages reach the rest by `core_of`, `definition_of` and
`call_of`, so a new name in this list is one that users are meant to call."""


def test_an_app_and_a_task_show_only_what_is_meant_for_users() -> None:
    app = rota.Rota("memory://")
    task = app.task(name="job")(lambda: None)
    shown = {
        "Rota": app,
        "Task": task,
        "Using": task.using(),
        "Bound": task.bind(),
        "Chain": task >> task,
        "Flow": app.flow("day", once=rota.Period.day()),
        "Client": app.client(),
        "Schedules": app.schedules,
    }

    for name, value in shown.items():
        public = [attribute for attribute in dir(value) if not attribute.startswith("_")]
        assert public == sorted(ATTRIBUTES[name].split()), name


MADE_BY_ROTA = {
    *("Bound", "Chain", "ChainHandle", "Client", "Context", "Flow", "RunHandle", "Schedules", "Task", "Using"),
    *("Each", "FailedChildren", "Fanned", "Results"),
}
"""Classes that users do not call: what they are made of is internal."""


SPEAK_THE_PORT = {"Backend", "Client", "Schedules", "Run"}
"""Classes whose methods also take and return the values of a store, which `rota.store` exports."""


def named(annotation: object) -> Iterator[type]:
    """The classes of rota that an annotation names."""
    for part in (annotation, get_origin(annotation), *get_args(annotation)):
        if inspect.isclass(part) and part.__module__.startswith("rota."):
            yield part
        elif part is not annotation and part is not get_origin(annotation):
            for inner in part if isinstance(part, list) else [part]:
                yield from named(inner)


def signatures(name: str) -> Iterator[tuple[str, Callable[..., object]]]:
    """The public functions of an exported name."""
    value = getattr(rota, name)
    if inspect.isfunction(value):
        yield name, value
    for attribute, member in vars(value).items() if inspect.isclass(value) else ():
        function = getattr(member, "fget", None) or getattr(member, "__func__", member)
        constructor = attribute == "__init__" and name not in MADE_BY_ROTA
        if inspect.isfunction(function) and (constructor or not attribute.startswith("_")):
            yield f"{name}.{attribute}", function


@pytest.mark.parametrize("name", rota.__all__)
def test_what_a_public_signature_names_is_exported(name: str) -> None:
    exported = {getattr(rota, each) for each in rota.__all__}
    if name in SPEAK_THE_PORT:
        exported |= {value for value in vars(rota.store).values() if inspect.isclass(value)}
    for where, function in signatures(name):
        missing = {kind for hint in get_type_hints(function).values() for kind in named(hint)} - exported
        assert not missing, f"{where} names {missing}: export it from rota, or underscore the method"
