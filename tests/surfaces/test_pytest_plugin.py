"""The pytest plugin, as a user's project has it: pytest in a process of its own."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import rota

ROOT = Path(__file__).parents[2]

PROJECT = """
[tool.pytest.ini_options]
asyncio_mode = "auto"
asyncio_default_fixture_loop_scope = "function"
pythonpath = ["."]
"""
JOBS = """
from rota import Retry, Rota

app = Rota("sqlite:///never.db")

@app.task(retry=Retry(1, delay=3600, jitter=0))
async def greet(name: str) -> str:
    greeted.append(name)
    if greeted == ["Ada"]:
        raise ConnectionError
    return f"hello {name}"

greeted = []
"""


SHOP_JOBS = """
from rota import Context, DailyAt, Retry, Rota

app = Rota("sqlite:///never.db")

@app.task(retry=Retry(1, delay=3600, jitter=0))
async def send_receipt(ctx: Context, order: int) -> str:
    if ctx.attempt == 1:
        raise ConnectionError
    return "sent"

@app.task(schedule=DailyAt(9))
async def daily_report() -> None: ...
"""
SHOP_ORDERS = """
from shop.jobs import send_receipt

async def pay(order: int) -> None:
    await send_receipt.submit(order)
"""


def run_pytest(folder: Path, **files: str) -> subprocess.CompletedProcess[str]:
    (folder / "pyproject.toml").write_text(PROJECT)
    for name, text in files.items():
        (folder / f"{name}.py").write_text(text)
    plugins = ["-p", "no:cacheprovider", "-p", "pytest_asyncio.plugin", "-p", "rota.testing.plugin"]
    here = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONPATH": str(Path(rota.__file__).parents[1])}
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", *plugins, "-W", "error", str(folder)],
        cwd=folder,
        env={**os.environ, **here},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_every_test_has_an_app_of_its_own(tmp_path: Path) -> None:
    done = run_pytest(
        tmp_path,
        test_own="""
from rota.testing import assert_not_submitted, assert_submitted, drain

async def submit_and_see(app):
    @app.task
    async def greet(name: str) -> str:
        return f"hello {name}"

    await assert_not_submitted(app, "greet")
    run = await greet.submit("Ada")
    await assert_submitted(app, greet, "Ada")
    await drain(app)
    assert await run.result() == "hello Ada"

async def test_one(rota_app):
    await submit_and_see(rota_app)

async def test_another(rota_app):
    await submit_and_see(rota_app)
""",
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 passed" in done.stdout


def test_a_projects_own_app_is_bound_to_memory_and_its_clock_moves(tmp_path: Path) -> None:
    done = run_pytest(
        tmp_path,
        jobs=JOBS,
        conftest="""
import jobs, pytest

@pytest.fixture
def rota_app():
    with jobs.app.bound_to("memory://") as app:
        yield app
""",
        test_jobs="""
import jobs
from rota.testing import assert_submitted, drain

async def test_a_failed_greeting_is_tried_again_an_hour_later(rota_app, rota_clock):
    run = await jobs.greet.submit("Ada")
    await drain(rota_app)
    rota_clock.move(minutes=59)
    await drain(rota_app)
    assert jobs.greeted == ["Ada"]
    rota_clock.move(minutes=2)
    await drain(rota_app)
    assert await run.result() == "hello Ada"

def test_from_plain_code(rota_app):
    jobs.greet.submit_sync("Bob")

async def test_nothing_is_left_of_the_others(rota_app):
    assert not any((await rota_app.depths()).values())

def test_outside_it_is_as_it_was():
    assert jobs.app.backend.url.startswith("sqlite")
""",
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "4 passed" in done.stdout
    assert not (tmp_path / "never.db").exists(), "the project's own store is left alone"


def test_the_page_on_testing_runs_as_written(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "testing.md").read_text()
    conftest, submitting, clock, schedule, simulation = re.findall(
        r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL
    )
    shop = tmp_path / "shop"
    shop.mkdir()
    (shop / "jobs.py").write_text(SHOP_JOBS)
    (shop / "orders.py").write_text(SHOP_ORDERS)
    done = run_pytest(
        tmp_path, conftest=conftest, test_orders=submitting + clock + schedule, test_simulation=simulation
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "4 passed" in done.stdout


def test_the_plugin_brings_nothing_heavy_along() -> None:
    """Every pytest start of every project with rota installed pays for it."""
    code = """
import sys
import rota
before = set(sys.modules)
import rota.testing.plugin
new = {name for name in set(sys.modules) - before if name.startswith("rota.") or name in ("sqlite3", "hypothesis")}
assert new == {"rota.testing", "rota.testing.plugin"}, new
"""
    subprocess.run([sys.executable, "-c", "import pytest\n" + code], check=True, timeout=60)


def test_pytest_finds_the_plugin_by_its_entry_point() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    plugins = {"rota": "rota.testing.plugin", "rota_django": "rota.django.pytest_plugin"}
    assert project["entry-points"]["pytest11"] == plugins
