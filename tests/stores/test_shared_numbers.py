"""The numbers of the port reach Lua and SQL from one list, and nobody writes them there by hand."""

import re
from pathlib import Path

import pytest

from rota.stores import bounds
from rota.stores.postgres import schema
from rota.stores.redis import scripts
from rota.stores.redis.library import library

LUA = Path(scripts.__file__).parent / "lua"
SQL = Path(schema.__file__).parent / "functions"
VERBS = [*sorted(file.stem for file in LUA.glob("*.lua")), *scripts.FILES]
GIVEN = {"KEYS", "ARGV", "ROOT", "REASONS", "ARRIVED", "REDIS_VERSION_NUM"}
"""Names in capitals that a script has of itself: from the server, and tables."""
SHARED = sorted(bounds.constants(bounds.REDIS))


@pytest.mark.parametrize("verb", VERBS)
def test_every_constant_of_a_script_is_written_out(verb: str) -> None:
    text = re.sub(r'"[^"\n]*"', '""', scripts.script(verb, True).text)
    assert set(re.findall(r"\b[A-Z][A-Z_0-9]+\b", text)) <= GIVEN


def test_every_constant_of_the_library_is_written_out() -> None:
    text = re.sub(r'"[^"\n]*"', '""', library().text)
    assert set(re.findall(r"\b[A-Z][A-Z_0-9]+\b", text)) <= GIVEN


def test_every_constant_of_the_functions_is_written_out() -> None:
    assert not re.findall(r"\{[A-Z_]+\}", schema.functions())


@pytest.mark.parametrize("name", SHARED)
def test_every_shared_number_is_used(name: str) -> None:
    files = [*LUA.rglob("*.lua"), *SQL.glob("*.sql")]
    assert any(re.search(rf"\b{name}\b", file.read_text()) for file in files)


def test_a_number_of_the_port_reaches_lua_and_sql(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "IDLE_MEMORY", 17.25)
    assert "now - 17.25" in scripts.compiled((LUA / "shared" / "hints.lua").read_text())
    assert "w.seen_at > now - 17.25" in schema.functions.__wrapped__()
