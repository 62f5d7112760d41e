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


def test_the_five_minute_tour_runs_as_written(tmp_path: Path) -> None:
    jobs, program = blocks("python")
    (tmp_path / "jobs.py").write_text(jobs)
    (tmp_path / "pyproject.toml").write_text("")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("ROTA_")}
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env={**environment, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "hello Ada\n"
    assert (tmp_path / ".rota" / "rota.db").exists()


def test_every_command_in_the_readme_exists() -> None:
    commands = re.findall(r"^rota (?:-A \S+ )?([a-z]+(?: (?:ls|show|retry))?)", "".join(blocks("sh")), re.MULTILINE)
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
