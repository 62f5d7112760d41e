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
PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z][a-z0-9]*|[a-z0-9]+")
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


@cache
def parts(name: str) -> tuple[str, ...]:
    """The words of an identifier: `_` and a capital begin a word. Words in capitals only count as written small."""
    found = PART.findall(name)
    return tuple(part.lower() if len(part) > 1 and part.isupper() else part for part in found)


def contains(identifier: str, name: str) -> bool:
    """Whether the words of `name` follow each other in `identifier`. The name of a test is a sentence: it has none."""
    if identifier.startswith("test_"):
        return False
    words, wanted = parts(identifier), parts(name)
    begins = (at for at, word in enumerate(words) if word == wanted[0]) if wanted[0] in words else ()
    return any(words[at : at + len(wanted)] == wanted for at in begins)


@cache
def excuses() -> tuple[tuple[str, str], ...]:
    """Pairs of a name and a place: there, the retired name or the identifier may be used."""
    return tuple(
        (name, place)
        for names, places, _ in rows("### Exceptions")
        for name in QUOTED.findall(names)
        for place in QUOTED.findall(places)
    )


def uses(name: str, scope: str) -> list[str]:
    """Where a retired name is still used, as `path:line: identifier`."""
    paths = [path for path in sources() if any(within(path, place) for place in QUOTED.findall(scope))]
    if scope.startswith(MODULES):
        return [path for path in paths if name in Path(path).with_suffix("").parts]
    found: list[str] = []
    for path in paths:
        excused = {other for other, place in excuses() if within(path, place)}
        for identifier, line in identifiers(ROOT / path).items():
            if contains(identifier, name) and excused.isdisjoint((name, identifier)):
                found.append(f"{path}:{line}: {identifier}")
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


def test_every_exception_is_needed() -> None:
    retired_names = {name for name, _, _ in retired()}
    for name, place in excuses():
        here = [one for path in sources() if within(path, place) for one in identifiers(ROOT / path)]
        assert any(contains(one, name) if name in retired_names else one == name for one in here), (name, place)


@pytest.mark.parametrize(
    ("identifier", "name", "found"),
    [
        ("ask", "ask", True),
        ("_ask_again", "ask", True),
        ("ASK_AGAIN", "ask", True),
        ("task", "ask", False),
        ("TaskWish", "Wish", True),
        ("wish", "Wish", False),
        ("Wishes", "Wish", False),
        ("must_let_go_now", "let_go", True),
        ("let_us_go", "let_go", False),
        ("test_an_ask_is_answered", "ask", False),
    ],
)
def test_a_name_is_found_in_a_longer_one(identifier: str, name: str, found: bool) -> None:
    assert contains(identifier, name) is found


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
