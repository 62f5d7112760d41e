"""One vocabulary: `docs/glossary.md` names real places, and no retired name is an identifier where it is retired."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
GLOSSARY = ROOT / "docs" / "glossary.md"
CODE = ("src/rota", "storekit")
MODULES = "modules of "
QUOTED = re.compile(r"`([^`]+)`")
WORD = re.compile(r"[A-Za-z_]\w*")
LUA_NOISE = re.compile(r"--\[\[.*?\]\]|--[^\n]*|\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*'", re.DOTALL)
SQL_NOISE = re.compile(r"--[^\n]*|/\*.*?\*/|'(?:[^']|'')*'", re.DOTALL)
Row = tuple[str, ...]


@cache
def rows(heading: str) -> tuple[Row, ...]:
    """The cells of the table under a heading of the glossary, without its first two lines."""
    _, _, section = GLOSSARY.read_text().partition(f"\n{heading}\n")
    lines = [line for line in re.split(r"\n##+ ", section)[0].splitlines() if line.startswith("|")]
    return tuple(tuple(cell.strip() for cell in line.strip("|").split("|")) for line in lines[2:])


def words() -> list[Row]:
    headings = [line for line in GLOSSARY.read_text().splitlines() if line.startswith("## ")]
    return [row for heading in headings if heading != "## Retired names" for row in rows(heading)]


@cache
def identifiers(path: Path) -> dict[str, int]:
    """The identifiers of a file of Python, Lua or SQL, each with its first line. Leading underscores do not count."""
    text = path.read_text()
    found: dict[str, int] = {}
    for name, line in _names(text, path.suffix):
        found.setdefault(name.strip("_"), line)
    return found


def _names(text: str, suffix: str) -> Iterator[tuple[str, int]]:
    if suffix != ".py":
        noise = LUA_NOISE if suffix == ".lua" else SQL_NOISE
        bare = noise.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)
        for number, row in enumerate(bare.splitlines(), 1):
            yield from ((name, number) for name in WORD.findall(row))
        return
    for node in ast.walk(ast.parse(text)):
        line: int = node.lineno if isinstance(node, ast.expr | ast.stmt | ast.arg | ast.keyword | ast.alias) else 1
        if isinstance(node, ast.Global | ast.Nonlocal):
            continue
        for field in ("id", "attr", "arg", "name", "asname"):  # names, attributes, parameters, definitions, imports
            value = getattr(node, field, None)
            if isinstance(value, str):
                yield from ((name, line) for name in value.split("."))
        if isinstance(node, ast.ImportFrom) and node.module:
            yield from ((name, line) for name in node.module.split("."))


@cache
def sources() -> tuple[str, ...]:
    found = [path for root in CODE for path in (ROOT / root).rglob("*") if path.suffix in (".py", ".lua", ".sql")]
    return tuple(sorted(str(path.relative_to(ROOT)) for path in found))


def within(path: str, place: str) -> bool:
    """Is `path` the file `place`, the module `place`, or a file in the folder `place`?"""
    return path in (place, f"{place}.py") or path.startswith(f"{place}/")


def absent(scope: str) -> list[str]:
    """The places of a scope that are no file, no module and no folder."""
    return [
        place for place in QUOTED.findall(scope) if not any((ROOT / f"{place}{end}").exists() for end in ("", ".py"))
    ]


def uses(name: str, scope: str) -> list[str]:
    """Where a retired name is still used, as `path:line`. A name of several words is also found inside a longer one."""
    places = QUOTED.findall(scope)
    excused = [
        place for names, other, _ in rows("### Exceptions") if f"`{name}`" in names for place in QUOTED.findall(other)
    ]
    paths = [path for path in sources() if any(within(path, place) for place in places)]
    paths = [path for path in paths if not any(within(path, place) for place in excused)]
    if scope.startswith(MODULES):
        return [path for path in paths if name in Path(path).with_suffix("").parts]
    found: list[str] = []
    for path in paths:
        for identifier, line in identifiers(ROOT / path).items():
            if identifier == name or ("_" in name and re.search(rf"(?:^|_){name}(?:_|$)", identifier)):
                found.append(f"{path}:{line}")
    return found


def retired() -> list[Row]:
    return [
        (name, scope, instead) for names, scope, instead in rows("## Retired names") for name in QUOTED.findall(names)
    ]


@pytest.mark.parametrize("word", words(), ids=lambda row: row[0])
def test_a_word_has_one_sentence_and_stands_where_the_glossary_says(word: Row) -> None:
    name, meaning, where, _ = word
    assert meaning.endswith("."), f"{name}: {meaning}"
    assert QUOTED.findall(where), f"{name} names no place"
    assert absent(where) == [], f"{name} is said to stand elsewhere"


def test_a_word_is_explained_once() -> None:
    names = [row[0].lower() for row in words()]
    assert len(names) > 40
    assert sorted({name for name in names if names.count(name) > 1}) == []


@pytest.mark.parametrize(("name", "scope", "instead"), retired())
def test_a_retired_name_is_no_identifier_where_it_is_retired(name: str, scope: str, instead: str) -> None:
    assert uses(name, scope) == [], f"{name} is retired: docs/glossary.md says to use {instead}"


def test_the_places_of_retired_names_and_of_exceptions_exist() -> None:
    scopes = [row[1] for row in (*rows("## Retired names"), *rows("### Exceptions"))]
    assert scopes
    assert [place for scope in scopes for place in absent(scope)] == []


@pytest.mark.parametrize(
    ("suffix", "text"),
    [
        (".py", "class Wish: ..."),
        (".py", "def wish(): ...\nx.Wish"),
        (".py", "from a.Wish import b"),
        (".py", "import a as _Wish"),
        (".py", "call(f'{Wish}')"),
        (".py", "def f(*, Wish): ..."),
        (".lua", "local Wish = 1 -- prose"),
        (".sql", "SELECT Wish FROM t"),
    ],
)
def test_an_identifier_is_found_in_every_language(tmp_path: Path, suffix: str, text: str) -> None:
    path = tmp_path / f"source{suffix}"
    path.write_text(text)
    assert "Wish" in identifiers(path)


@pytest.mark.parametrize(
    ("suffix", "text"),
    [
        (".py", '"""A Wish."""\n# Wish\nx = "Wish"'),
        (".lua", '-- Wish\nlocal a = "Wish" --[[ Wish\nWish ]]'),
        (".sql", "-- Wish\nSELECT 'Wish' /* Wish */"),
    ],
)
def test_prose_is_no_identifier(tmp_path: Path, suffix: str, text: str) -> None:
    path = tmp_path / f"source{suffix}"
    path.write_text(text)
    assert "Wish" not in identifiers(path)
