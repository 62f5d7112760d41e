"""What the README says is true: its Python runs, its commands exist, its links lead somewhere."""

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", README, re.MULTILINE | re.DOTALL)


def run(folder: Path, program: str) -> str:
    """What a program prints that stands beside the README's jobs.py."""
    jobs, *_ = blocks("python")
    (folder / "jobs.py").write_text(jobs)
    (folder / "pyproject.toml").write_text("")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("ROTA_")}
    paths = [str(folder), *filter(None, [os.environ.get("PYTHONPATH")])]
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=folder,
        env={**environment, "PYTHONPATH": os.pathsep.join(paths)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert (folder / ".rota" / "rota.db").exists()
    return done.stdout


def test_the_five_minute_tour_runs_as_written(tmp_path: Path) -> None:
    assert run(tmp_path, blocks("python")[1]) == "hello Ada\n"


def test_the_schedules_run_as_written(tmp_path: Path) -> None:
    said = run(tmp_path, blocks("python")[2])

    assert re.fullmatch(r"next at \d{4}-\d\d-\d\d \d\d:\d\d:\d\d\+00:00\n", said)


def test_every_command_in_the_readme_exists() -> None:
    commands = re.findall(
        r"^rota (?:-A \S+ )?([a-z]+(?: (?:ls|show|retry|put|pause|backfill))?)", "".join(blocks("sh")), re.MULTILINE
    )
    assert len(commands) >= 7
    for command in commands:
        done = subprocess.run(
            [sys.executable, "-m", "rota", *command.split(), "--help"], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, (command, done.stderr)


def test_every_make_target_in_the_readme_exists() -> None:
    makefile = (ROOT / "Makefile").read_text()
    for target in re.findall(r"^make ([a-z]+)", "".join(blocks("sh")), re.MULTILINE):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


def test_every_link_leads_somewhere() -> None:
    for page in (ROOT / "README.md", ROOT / "ARCHITECTURE.md", ROOT / "CONTRIBUTING.md"):
        for link in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
            assert (page.parent / link).exists(), f"{page.name}: {link}"


def test_the_tree_in_architecture_matches_the_tree() -> None:
    drawn = (ROOT / "ARCHITECTURE.md").read_text().split("```")[1]
    for path in (ROOT / "src" / "rota").iterdir():
        if path.suffix == ".py" or (path.is_dir() and path.name != "__pycache__"):
            assert path.name in drawn or path.name == "__main__.py", f"{path.name} is not in ARCHITECTURE.md"
    for folder in ("domain", "engine"):
        for path in (ROOT / "src" / "rota" / folder).glob("*.py"):
            assert path.stem in drawn or path.stem == "__init__", f"{folder}/{path.name} is not in ARCHITECTURE.md"
