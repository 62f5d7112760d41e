"""What pyproject.toml and the pins promise is so."""

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

from packaging.requirements import Requirement

from tools.pythons import OLDEST, claimed

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS: dict[str, list[str]] = PROJECT["optional-dependencies"]
FOR_OTHERS = {"all", "dev"}
"""Extras that bring no feature of their own: every other extra, and what the tests and checks need."""


def imported() -> Iterator[str]:
    """Yield the top-level packages that the source imports, also inside functions."""
    for path in (ROOT / "src" / "rota").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_bytes())):
            if isinstance(node, ast.Import):
                yield from (alias.name.split(".")[0] for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                yield node.module.split(".")[0]
            elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module"):
                yield from (str(ast.literal_eval(arg)) for arg in node.args if isinstance(arg, ast.Constant))


def test_every_extra_has_code_behind_it() -> None:
    known = set(imported())
    for extra in EXTRAS.keys() - FOR_OTHERS:
        brought = {Requirement(line).name for line in EXTRAS[extra]}
        packages = brought | {name.partition("-")[0] for name in brought}
        assert packages & known, f"[{extra}] brings {', '.join(sorted(brought))}, and nothing in src/rota imports them"


def test_all_brings_every_extra_but_that_of_developers() -> None:
    (line,) = EXTRAS["all"]
    assert Requirement(line).extras == EXTRAS.keys() - FOR_OTHERS


def test_every_extra_that_a_message_or_a_page_names_exists() -> None:
    paths = [*(ROOT / "src").rglob("*.py"), ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    named = {
        extra.strip()
        for path in paths
        for words in re.findall(r"\brota\[([a-z, ]+)\]", path.read_text())
        for extra in words.split(",")
    }
    assert {"redis", "postgres"} <= named <= EXTRAS.keys()


def test_the_classifiers_name_each_python_from_the_oldest_on() -> None:
    minors = [int(minor.split(".")[1]) for minor in claimed(PROJECT["classifiers"])]
    assert minors == list(range(OLDEST[1], OLDEST[1] + len(minors)))
    assert PROJECT["requires-python"] == f">={OLDEST[0]}.{OLDEST[1]}"


def pins(name: str) -> dict[str, str]:
    lines = (ROOT / "requirements" / name).read_text().splitlines()
    requirements = [Requirement(line) for line in lines if line and not line.startswith("#")]
    assert all(re.fullmatch(r"==[^*]+", str(requirement.specifier)) for requirement in requirements)
    return {requirement.name: str(requirement) for requirement in requirements}


def test_the_pins_agree_with_each_other() -> None:
    run, dev, dist, django = pins("run.txt"), pins("dev.txt"), pins("dist.txt"), pins("django61.txt")
    assert run.items() <= dev.items()
    assert {name: pin for name, pin in django.items() if name != "Django"}.items() <= dev.items()
    assert dev["Django"].startswith(django["Django"]), "dev.txt has the same Django for Python 3.12 and newer"
    assert {name: pin for name, pin in pins("django52.txt").items() if name != "Django"}.items() <= dev.items()
    assert not pins("deploy.txt").keys() & dev.keys(), "deploy.txt is installed beside dev.txt"
    assert not dist.keys() & dev.keys(), "dist.txt is installed beside dev.txt"
    assert not pins("servers.txt").keys() & dev.keys(), "servers.txt is used beside dev.txt"


def test_no_file_names_a_host_of_a_package_registry() -> None:
    """Which registry pip asks is the choice of the machine."""
    # The names are put together here, so that this file does not name a host either.
    hosts = re.compile("|".join(f"{name}[.]" for name in ("py" + "pi", "python" + "hosted", "npm" + "js")))
    options = re.compile("--(extra-)?index" + "-url|--find" + "-links")
    paths = [ROOT / "Makefile", ROOT / "pyproject.toml", *ROOT.glob("*.md"), *(ROOT / ".ci").iterdir()]
    for folder in ("requirements", "tools", "src", "storekit", "tests", "benchmarks", "examples", "docs"):
        paths += [path for path in (ROOT / folder).rglob("*") if path.suffix in (".py", ".md", ".txt", ".toml")]
    paths += [path for path in (ROOT / "ui").iterdir() if path.is_file()]
    texts = {str(path.relative_to(ROOT)): path.read_text() for path in paths}
    assert [name for name, text in texts.items() if hosts.search(text) or options.search(text)] == []
