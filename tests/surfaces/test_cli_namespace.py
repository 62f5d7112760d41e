"""`--url` names a server; the place there is the app's, unless the URL names that as well."""

import json
import sys
from pathlib import Path

import pytest

from rota.cli import run as command
from tests.faults.conftest import in_place
from tests.server_fixtures import Servers

APP = """
from rota import Rota
app = Rota("redis://127.0.0.1:1", namespace={namespace!r})

@app.task
def greet(name: str) -> str:
    return name
"""


@pytest.fixture(params=["valkey-9", "postgres-18"])
def server_url(request: pytest.FixtureRequest, servers: Servers) -> str:
    return servers.get(request.param).url


@pytest.fixture
def app(tmp_path: Path, namespace: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """The reference of an app that has a namespace, on a server that is not there."""
    module = f"app_of_{namespace}"
    (tmp_path / f"{module}.py").write_text(APP.format(namespace=namespace))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    return f"{module}:app"


def listed(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[str]:
    assert command(["runs", "ls", "--json", *arguments]) == 0
    return [run["task"] for run in json.loads(capsys.readouterr().out)]


def test_what_is_submitted_and_listed_is_in_the_apps_namespace(
    server_url: str, app: str, namespace: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command(["submit", "greet", "name=Ada", "-A", app, "--url", server_url]) == 0
    capsys.readouterr()
    place = in_place(server_url, namespace)
    assert listed(capsys, "--url", place) == ["greet"]
    assert listed(capsys, "-A", app, "--url", server_url) == ["greet"]


def test_a_namespace_in_the_url_has_the_last_word(
    server_url: str, app: str, namespace: str, capsys: pytest.CaptureFixture[str]
) -> None:
    elsewhere = in_place(server_url, f"{namespace}_b")
    assert command(["submit", "greet", "name=Ada", "-A", app, "--url", elsewhere]) == 0
    capsys.readouterr()
    assert listed(capsys, "-A", app, "--url", server_url) == []
    assert listed(capsys, "-A", app, "--url", elsewhere) == ["greet"]
