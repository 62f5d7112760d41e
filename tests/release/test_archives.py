"""What `make dist` builds: the archives of a small project, compared byte by byte, and the wheel of rota itself."""

import email
import tarfile
import tomllib
from configparser import ConfigParser
from email.message import Message
from pathlib import Path, PurePosixPath

import pytest

from tools.archives import build, differences, members, replace_folder, unpack

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A small project that hatchling can build."""
    folder = tmp_path / "source"
    (folder / "small").mkdir(parents=True)
    (folder / "small" / "__init__.py").write_text("ANSWER = 42\n")
    (folder / "pyproject.toml").write_text(
        '[build-system]\nrequires = ["hatchling"]\nbuild-backend = "hatchling.build"\n'
        '[project]\nname = "small"\nversion = "1"\nrequires-python = ">=3.11"\n'
        '[tool.hatch.build.targets.sdist]\ninclude = ["/small"]\n'
    )
    return folder


def test_two_builds_with_one_time_stamp_have_the_same_bytes_also_from_the_sdist(source: Path, tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    build(source, one, ["sdist", "wheel"], epoch=1_700_000_000)
    unpacked = unpack(one / "small-1.tar.gz", tmp_path / "unpacked")
    build(unpacked, other, ["sdist", "wheel"], epoch=1_700_000_000, zone="Pacific/Chatham")
    assert {path.name for path in one.iterdir()} == {"small-1.tar.gz", "small-1-py3-none-any.whl"}
    assert differences(one, other) == []


def test_another_time_stamp_makes_other_bytes_of_the_same_files(source: Path, tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    build(source, one, ["wheel"], epoch=1_700_000_000)
    build(source, other, ["wheel"], epoch=1_800_000_000)
    (told,) = differences(one, other)
    assert told.startswith("small-1-py3-none-any.whl: the same files, but other bytes")


def test_a_file_that_differs_is_named(source: Path, tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    build(source, one, ["sdist"], epoch=1_700_000_000)
    (source / "small" / "__init__.py").write_text("ANSWER = 43\n")
    (source / "small" / "more.py").write_text("")
    build(source, other, ["sdist"], epoch=1_700_000_000)
    assert differences(one, other) == [
        "small-1.tar.gz: small-1/small/__init__.py differs",
        "small-1.tar.gz: small-1/small/more.py differs",
    ]


def test_an_archive_that_only_one_build_made_is_named(tmp_path: Path) -> None:
    for folder in ("one", "other"):
        (tmp_path / folder).mkdir()
    (tmp_path / "one" / "a.whl").write_bytes(b"")
    assert differences(tmp_path / "one", tmp_path / "other") == ["a.whl is only in one of the two builds"]


def test_a_project_that_cannot_be_built_says_why(source: Path, tmp_path: Path) -> None:
    (source / "pyproject.toml").write_text('[project]\nname = "small"\n')
    with pytest.raises(RuntimeError, match=r"hatchling cannot build .*source:\n(.|\n)*version"):
        build(source, tmp_path / "out", ["wheel"])


def test_old_archives_do_not_stay_in_dist(tmp_path: Path) -> None:
    for folder, name in (("dist", "old.whl"), ("built", "new.whl")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / name).write_bytes(b"")
    replace_folder(tmp_path / "dist", tmp_path / "built")
    assert [path.name for path in (tmp_path / "dist").iterdir()] == ["new.whl"]


# -- rota itself ---------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("built")
    build(ROOT, folder, ["sdist", "wheel"])
    return folder


@pytest.fixture(scope="module")
def wheel(built: Path) -> dict[str, bytes]:
    """The files of rota's wheel."""
    (path,) = built.glob("*.whl")
    return members(path)


@pytest.fixture(scope="module")
def info(wheel: dict[str, bytes]) -> str:
    """The folder of the wheel that holds its metadata."""
    return next(name for name in wheel if name.endswith("/METADATA")).removesuffix("/METADATA")


@pytest.fixture(scope="module")
def metadata(wheel: dict[str, bytes], info: str) -> Message:
    return email.message_from_string(wheel[f"{info}/METADATA"].decode())


def test_the_wheel_holds_the_package_and_nothing_else(wheel: dict[str, bytes], info: str) -> None:
    """Every file of src/rota, py.typed, SQL and Lua among them, and no tests, tools or examples."""
    package = ROOT / "src" / "rota"
    files = (path for path in package.rglob("*") if path.is_file() and path.suffix != ".pyc")
    expected = {path.relative_to(ROOT / "src").as_posix(): path.read_bytes() for path in files}
    assert {name: data for name, data in wheel.items() if not name.startswith(f"{info}/")} == expected
    assert "rota/py.typed" in wheel
    names = [PurePosixPath(name).name for name in wheel]
    assert not [name for name in names if name.startswith("test_") or name == "conftest.py"]


def test_the_wheel_holds_the_licence(wheel: dict[str, bytes], info: str, metadata: Message) -> None:
    assert wheel[f"{info}/licenses/LICENSE"] == (ROOT / "LICENSE").read_bytes()
    assert metadata["License-Expression"] == "Apache-2.0"
    assert metadata.get_all("License-File") == ["LICENSE"]


def test_the_metadata_of_the_wheel_say_what_rota_is(metadata: Message) -> None:
    assert (metadata["Name"], metadata["Version"]) == ("rota", PROJECT["version"])
    assert metadata["Summary"] == PROJECT["description"]
    assert metadata["Requires-Python"] == ">=3.11"
    assert metadata["Description-Content-Type"] == "text/markdown"
    assert metadata.get_payload() == (ROOT / "README.md").read_text()
    assert set(metadata.get_all("Provides-Extra", [])) == set(PROJECT["optional-dependencies"])
    needed = [line for line in metadata.get_all("Requires-Dist", []) if "extra ==" not in line]
    assert sorted(needed) == sorted(PROJECT["dependencies"])


def test_the_wheel_brings_the_command_and_the_pytest_plugin(wheel: dict[str, bytes], info: str) -> None:
    entry_points = ConfigParser()
    entry_points.read_string(wheel[f"{info}/entry_points.txt"].decode())
    assert {name: dict(entry_points[name]) for name in entry_points.sections()} == {
        "console_scripts": {"rota": "rota.cli:main"},
        "pytest11": {"rota": "rota.testing.plugin", "rota_django": "rota.django.pytest_plugin"},
    }


def test_the_sdist_holds_what_make_needs(built: Path) -> None:
    (path,) = built.glob("*.tar.gz")
    with tarfile.open(path) as archive:
        names = {name.split("/", 1)[1] for name in archive.getnames()}
    assert {"Makefile", "pyproject.toml", "requirements/dev.txt", "tools/dist.py", "tests/conftest.py"} <= names
    assert {"LICENSE", "README.md", "ARCHITECTURE.md", "docs/schedules.md", "src/rota/py.typed"} <= names
    assert {"hatch_build.py", "ui/package-lock.json", "src/rota/web/pages/index.html"} <= names
    left_out = (".venv", ".git/", "dist/", "ui/node_modules/")
    assert not [name for name in names if name.startswith(left_out) or "__pycache__" in name]
