"""The OpenAPI document: every route is in it, and what the service answers is what the document says."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from rota.web.openapi import document
from rota.web.table import ROUTES
from tests.faults.conftest import store_url as store_url
from tests.web.serving import Served, serving

HERE = Path(__file__).parent


def test_every_route_is_described() -> None:
    paths = document(ROUTES)["paths"]
    assert {(route.template, route.method.lower()) for route in ROUTES} == {
        (path, method) for path, methods in paths.items() for method in methods
    }
    names = [operation["operationId"] for methods in paths.values() for operation in methods.values()]
    assert len(names) == len(set(names))


def test_a_run_may_be_gone_wherever_a_path_names_one() -> None:
    paths = document(ROUTES)["paths"]
    about_one = [each for path, methods in paths.items() if "/runs/{id}" in path for each in methods.values()]
    assert len(about_one) > 5
    assert [each["operationId"] for each in about_one if "410" not in each["responses"]] == []


def explore(served: Served, examples: int) -> None:
    """Send requests that fit the document, and requests that do not; every answer has to be one of the document."""
    command = [
        sys.executable,
        "-m",
        "schemathesis.cli",
        "--config-file",
        str(HERE / "schemathesis.toml"),
        "run",
        f"{served.url}/api/v1/openapi.json",
        "--header",
        f"Authorization: Bearer {served.token}",
        "--max-examples",
        str(examples),
        "--seed",
        "1",
        "--no-color",
    ]
    hooks = {**os.environ, "SCHEMATHESIS_HOOKS": "tests.web.schemathesis_hooks", "PYTHONPATH": str(HERE.parents[1])}
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=served.folder, env=hooks)
    (served.folder / "schemathesis.txt").write_text(done.stdout + done.stderr)
    found = [done.stdout.partition(f"= {part} =")[2].partition("= WARNINGS =")[0] for part in ("ERRORS", "FAILURES")]
    assert done.returncode == 0, "\n".join(part[:8000] for part in found) + done.stderr[-2000:]


@pytest.mark.timeout(600)
def test_schemathesis_finds_nothing(tmp_path: Path) -> None:
    with serving(tmp_path, "memory://", "--role", "web") as served:
        explore(served, 5)


@pytest.mark.soak
@pytest.mark.parametrize("store_url", ["sqlite", "valkey-9", "postgres-18"], indirect=True)
def test_schemathesis_finds_nothing_on_any_store(store_url: str, tmp_path: Path) -> None:
    with serving(tmp_path, store_url, "--role", "web") as served:
        explore(served, 200)
