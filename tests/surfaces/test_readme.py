"""What the README and the pages in docs say is true: their Python runs, their commands exist, their links lead
somewhere."""

import os
import re
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

import rota
from rota import cli

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
PAGES = (README, *sorted((ROOT / "docs").glob("*.md")))
PACKAGES = ("app", "client", "domain", "engine", "flow", "schedules", "settings", "store", "task", "why")
LISTED = ("storekit", *(f"src/rota/{package}" for package in PACKAGES))
"""The folders whose modules ARCHITECTURE.md lists one by one."""


def blocks(language: str, page: Path = README) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)


def shell() -> str:
    return "".join(block for page in PAGES for block in blocks("sh", page))


def run(folder: Path, *arguments: str) -> str:
    """What Python prints that is started beside the README's jobs.py."""
    jobs, *_ = blocks("python")
    (folder / "jobs.py").write_text(jobs)
    (folder / "pyproject.toml").write_text("")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("ROTA_")}
    paths = [str(folder), *filter(None, [os.environ.get("PYTHONPATH")])]
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env={**environment, "PYTHONPATH": os.pathsep.join(paths)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_triggers_read_as_the_page_on_schedules_says() -> None:
    rows = re.findall(
        r"^\| `(.+?)` \| `(.+?)` \| (.+?) \|$", (ROOT / "docs" / "schedules.md").read_text(), re.MULTILINE
    )
    assert len(rows) >= 7
    for expression, text, words in rows:
        trigger = eval(
            expression.replace("\\|", "|"),
            {**{name: getattr(rota, name) for name in rota.__all__}, "datetime": datetime, "UTC": UTC},
        )
        assert (str(trigger), trigger.describe()) == (text, words)
        assert rota.Trigger.parse(text) == trigger


FLOWS_PLAYED = """
from rota.testing import simulate


async def scenario(simulation):
    await invoices.submit()
    await by_hand()
    await a_chain()
    await plan([("R1C1", START + timedelta(hours=1)), ("R1C2", START + timedelta(hours=2))])


START = datetime(2026, 11, 15, 8, tzinfo=UTC)
day_two = simulate(app, START, START + timedelta(days=1), scenario=scenario)
assert [f"{at:%H:%M}" for at in day_two.starts(watch)] == ["09:10", "10:10"]
"""


def test_the_page_on_flows_runs_as_written(tmp_path: Path) -> None:
    said = run(tmp_path, "-c", "".join(blocks("python", ROOT / "docs" / "flows.md")) + FLOWS_PLAYED).splitlines()

    assert "the invoices of 2026-11-15" in said
    assert [line for line in said if line.endswith("done ()")] == [
        f"{step} done ()" for step in ("races", "horses", "odds", "report", "notify")
    ]
    assert "['kept 4', 'told 4']" in said
    assert "2 planned" in said
    assert "report not done by 2026-11-16 07:00 Europe/Paris" not in said


SYNC_PLAYED = """
import asyncio

main()
orchestrate()
with app.running():
    print(announce.submit_sync("R1C1").result_sync(timeout=10), listed())
"""
IDEMPOTENCY_PLAYED = """
import asyncio
from rota.testing import drain


async def scenario():
    await pay.submit(7)
    booked, sent = await book.submit(8), await send_all.submit(["a", "b"])
    first, second = await digest.submit("ada", "one"), await digest.submit("ada", "two")
    await launch.submit(), await parse.submit("x"), await rebuild.submit("ada"), await invoices.submit()
    await drain(app)
    print(await booked.result(), await sent.result(), first.id == second.id)
    print(sorted(amount for (amount,) in books.execute("SELECT amount FROM payments")))
    await app.stop()


asyncio.run(scenario())
"""
OPERATIONS_PLAYED = """
import asyncio


async def scenario():
    async with app:
        print(await (await app.submit("resize", path="a.png")).result(timeout=10))
        print(await (await parent.submit(21)).result(timeout=10))


asyncio.run(scenario())
"""


DEPENDENCIES_PLAYED = """
import asyncio
from rota import RunFailed


async def scenario():
    await test_ship()
    async with app:
        assert await (await bill.submit(7)).result(timeout=10) == "session on shop"
        try:
            await (await bill.submit(-7)).result(timeout=10)
        except RunFailed:
            pass


asyncio.run(scenario())
"""


FASTAPI_PLAYED = """
test_sign_up()
test_without_an_engine()
with app.bound_to("memory://"), TestClient(api) as client:
    print(client.post("/send-notification/ada").json()["message"])
    print(client.portal.call(lambda: import_users.submit("a.csv")).result_sync(timeout=10))
"""


SUBMITTING_PLAYED = """
import asyncio


async def scenario():
    async with app:
        await submit_some()
        print(await order(17), await order(17))
        await from_a_request()


asyncio.run(scenario())
"""


COMING_FROM_PLAYED = """
import asyncio


async def scenario():
    async with app:
        await as_before()
        await (await invoices.submit()).result(timeout=10)


asyncio.run(scenario())
"""


@pytest.mark.parametrize(
    ("page", "played", "said"),
    [
        (
            "sync",
            SYNC_PLAYED,
            ["a.png at 800", "True", "done: c.png at 800", "True", "False", "2026-11-15 True", "16 []"],
        ),
        ("idempotency", IDEMPOTENCY_PLAYED, ["True 2 True", "[7, 8]"]),
        ("submitting", SUBMITTING_PLAYED, ["True False"]),
        ("operations", OPERATIONS_PLAYED, ["a.png", "42"]),
        ("fastapi", FASTAPI_PLAYED, ["Notification sent in the background", "a.csv with a session"]),
        ("flask", "\ntest_sign_up()\nprint(sorted(app.tasks))\n", ["['clean_up', 'welcome']"]),
        ("dependencies", DEPENDENCIES_PLAYED, ["fake session, customer of 7 in attempt 1", "commit", "rollback"]),
        ("coming-from", COMING_FROM_PLAYED, ["a.png at 400", "['odds', 'thumbnails']"]),
    ],
)
def test_a_page_runs_as_written(page: str, played: str, said: list[str], tmp_path: Path) -> None:
    """All its Python, as one module, and then used."""
    code = "".join(f"{block}\n\n" for block in blocks("python", ROOT / "docs" / f"{page}.md"))
    assert run(tmp_path, "-c", code + played).splitlines() == said


def test_every_command_in_the_docs_exists(capsys: pytest.CaptureFixture[str]) -> None:
    commands = re.findall(
        r"^rota (?:-A \S+ )?"
        r"([a-z]+(?: (?:ls|show|why|retry|put|pause|start|rerun|reset|backfill|run-now|set-next|set|clear))?)",
        shell(),
        re.MULTILINE,
    )
    assert len(commands) >= 7
    for command in sorted(set(commands)):
        assert cli.run([*command.split(), "--help"]) == 0
        said = capsys.readouterr().out
        assert said.startswith(f"Usage: rota {command} "), command  # of a stranger, help shows all there are


def test_every_make_target_in_the_readme_exists() -> None:
    makefile = (ROOT / "Makefile").read_text()
    for target in re.findall(r"^make ([a-z]+)", "".join(blocks("sh")), re.MULTILINE):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


def test_every_link_leads_somewhere() -> None:
    for page in (*PAGES, *(ROOT / name for name in ("ARCHITECTURE.md", "AGENTS.md", "CONTRIBUTING.md"))):
        for link in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
            assert (page.parent / link).exists(), f"{page.name}: {link}"


def test_the_tree_in_architecture_matches_the_tree() -> None:
    drawn = (ROOT / "ARCHITECTURE.md").read_text().split("```")[1]
    for path in (ROOT / "src" / "rota").iterdir():
        if path.suffix == ".py" or (path.is_dir() and path.name != "__pycache__"):
            assert path.name in drawn or path.name == "__main__.py", f"{path.name} is not in ARCHITECTURE.md"
    for folder in LISTED:
        for path in (ROOT / folder).glob("*.py"):
            home = path.stem in ("__init__", path.parent.name, "port")
            assert home or re.search(rf"\b{path.stem}\b", drawn), f"{folder}/{path.name} is not in ARCHITECTURE.md"
    for folder in ("storekit", "tests"):
        for path in (ROOT / folder).glob("*/"):
            assert path.name == "__pycache__" or f"{path.name}/" in drawn, f"{folder}/{path.name}/ is not there"


def test_every_file_that_architecture_names_exists() -> None:
    page = (ROOT / "ARCHITECTURE.md").read_text()
    ledgers, changes = (page.split(f"## {title}\n")[1] for title in ("Three ledgers", "Where does my change go?"))
    named: list[Path] = []
    header, _, *rows = re.findall(r"^\|.*\|$", ledgers.split("\n## ")[0], re.MULTILINE)
    folders = [ROOT / "src" / "rota" / folder for folder in re.findall(r"`(stores/\S+?)`", header)]
    for row in rows:
        cells = row.split("|")[2:-1]
        named += [
            folder / name
            for folder, cell in zip(folders, cells, strict=True)
            for name in re.findall(r"`([^`]+)`", cell)
        ]
    for name in re.findall(r"`([^`\s]+(?:/|\.\w+))`", changes.split("\n## ")[0]):
        outside = name.startswith(("docs/", "storekit/", "ui/", "CHANGELOG"))
        named.append((ROOT if outside else ROOT / "src" / "rota") / name)
    assert len(named) > 50
    for path in named:
        assert path.exists(), f"ARCHITECTURE.md names {path.relative_to(ROOT)}"


def test_the_lines_of_architecture_fit_beside_code() -> None:
    for line in (ROOT / "ARCHITECTURE.md").read_text().splitlines():
        assert len(line) <= 120, line
