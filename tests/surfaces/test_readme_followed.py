"""The README followed line by line, in one folder and in its order, as a stranger follows it: files and commands."""

import re
import subprocess
import sys
import sysconfig
from importlib.metadata import version
from pathlib import Path

import pytest

from tools.archives import build
from tools.readme import CHECKOUT, PATIENCE, follow, parts

ROOT = Path(__file__).parents[2]


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    build(ROOT, tmp_path / "wheels", ["wheel"])
    return next((tmp_path / "wheels").glob("rota-*.whl"))


@pytest.mark.timeout(600)
def test_the_readme_works_line_by_line_in_its_order(tmp_path: Path, wheel: Path) -> None:
    folder = tmp_path / "shop"
    folder.mkdir()

    def install(environment: Path, requirements: list[str]) -> None:
        """rota itself from this checkout; the rest is what this environment has, for a test asks no other host."""
        if requirements == ["rota"]:
            pip = [
                sys.executable,
                "-m",
                "pip",
                "--python",
                str(environment),
                "install",
                "-qq",
                "--no-deps",
                "--no-index",
            ]
            subprocess.run([*pip, wheel], check=True, timeout=PATIENCE)
            packages = next(environment.glob("lib/python*/site-packages"))
            (packages / "outer.pth").write_text(f"{sysconfig.get_path('purelib')}\n")
        else:
            assert all(version(requirement.partition("[")[0]) for requirement in requirements)

    page = (ROOT / "README.md").read_text()
    sections = follow(page, folder, Path(sys.executable).parent, install)
    assert sections == [text for kind, text in parts(page) if kind == "heading"]


def test_the_two_commands_of_a_checkout_are_those_that_run_this_test() -> None:
    """The section that the reader of the test above passes over."""
    page = (ROOT / "README.md").read_text()
    section = page.split(f"## {CHECKOUT}\n")[1].split("\n## ")[0]
    assert set(re.findall(r"^make (\w+)", section, re.MULTILINE)) == {"run", "test"}
