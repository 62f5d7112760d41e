"""A rule of the ledger has one name and one home in Python, Lua and SQL; the lists below hold the exceptions."""

import ast
import re
from collections.abc import Mapping
from pathlib import Path

import pytest

import rota
from rota.stores.postgres import schema
from rota.stores.redis import scripts

SRC = Path(rota.__file__).parents[1]
PYTHON = [*sorted((SRC / "rota" / "stores" / "ledger").glob("*.py")), SRC / "rota" / "stores" / "idle.py"]
LUA = sorted((Path(scripts.__file__).parent / "lua").rglob("*.lua"))
SQL = sorted((Path(schema.__file__).parent / "functions").glob("*.sql"))

NOT_IN_LUA = {
    "arrival_of": "task_of and serves read the name of a lane",
    "choose": "walk and consider: the lanes are read one after the other",
    "count_named": "part of lease",
    "in_force": "spec_of",
    "is_news": "a test in renew",
    "keep_schedule": "put_schedule, and arrive at its two callers",
    "overrides_of": "spec_of reads the row of the overrides",
    "pause_ends": "wake_at and upcoming call pause_end for each lane",
    "pause_task": "a branch of control_task",
    "ready": "a test in freed: a letter says the same",
    "regate": "part of override",
    "startable": "is_open, for one task",
    "streams": "walk: the lanes are read one after the other",
    "wakes": "a sleeper has an infinite score",
    "wakes_by": "a test in next_schedule",
    "while_open": "a test in walk",
    "with_overrides": "the answer of a claim has the overrides, and the client lays them over the runs",
}
NOT_IN_SQL = {
    "arrival_of": "lane_name, the other way round",
    "choose": "take, take_all and take_lane: one statement chooses",
    "count_named": "part of take",
    "drop": "a branch of control_task",
    "expire_due": "claim and sweep read the late runs and call expire",
    "gate_of": "part of take",
    "holders": "part of admit",
    "in_force": "put_in_force writes it when the code or an operator changes it",
    "is_news": "a test in renew",
    "keep_schedule": "part of declare_schedule and control_schedule",
    "move": "part of edit_run",
    "others_wake": "part of wake_at",
    "overrides_of": "a column of specs",
    "pause_end": "part of wake_at",
    "pause_ends": "part of wake_at",
    "pause_task": "a branch of control_task",
    "ready": "part of end_waiting",
    "regate": "part of override",
    "register": "part of claim",
    "release": "meet_needs(met_by(...))",
    "remember_end": "part of meet_needs",
    "slide": "part of note_unique",
    "startable": "part of take_all",
    "streams": "part of take_all",
    "try_run": "part of take",
    "unique_row": "part of held_by_other and done_by",
    "wake_for": "part of wake_at",
    "wakes": "part of to_hint",
    "wakes_by": "part of next_schedule",
    "while_open": "part of take",
    "with_overrides": "the answer of a claim has the overrides, and the client lays them over the runs",
}


def rules() -> dict[str, str]:
    """The functions of the Python ledger, without leading underscores, each with its module."""
    return {
        node.name.strip("_"): str(path.relative_to(SRC))
        for path in PYTHON
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.FunctionDef)
    }


def twins(file: Path) -> list[str]:
    """The Python modules that one of the first two lines of `file` names."""
    (line,) = [line for line in file.read_text().splitlines()[:2] if line.startswith("-- twin: ")]
    return line.removeprefix("-- twin: ").split()


def routines(file: Path) -> set[str]:
    """The functions of a file of Lua or SQL. A file of Lua that is no shared one is a function too: its verb."""
    text = file.read_text()
    if file.suffix == ".sql":
        return set(re.findall(r"^CREATE OR REPLACE FUNCTION (\w+)", text, re.MULTILINE))
    verb = {file.stem} if file.parent.name == "lua" else set[str]()
    return verb | set(re.findall(r"^(?:local )?function (?:\w+\.)?(\w+)", text, re.MULTILINE))


@pytest.mark.parametrize("file", [*LUA, *SQL], ids=lambda file: file.name)
def test_every_script_names_its_twins_in_python(file: Path) -> None:
    assert twins(file)
    for twin in twins(file):
        assert (SRC / twin).is_file()


@pytest.mark.parametrize(("files", "missing"), [(LUA, NOT_IN_LUA), (SQL, NOT_IN_SQL)], ids=["Lua", "SQL"])
def test_a_rule_has_the_same_name_in_every_ledger(files: list[Path], missing: Mapping[str, str]) -> None:
    there = {name for file in files for name in routines(file)}
    assert sorted(set(rules()) - there) == sorted(missing)


@pytest.mark.parametrize("files", [LUA, SQL], ids=["Lua", "SQL"])
def test_a_rule_is_in_a_file_whose_twin_has_it(files: list[Path]) -> None:
    homes = {(name, twin) for file in files for name in routines(file) for twin in twins(file)}
    there = {name for name, _ in homes}
    astray = [name for name, module in rules().items() if name in there and (name, module) not in homes]
    assert astray == []
