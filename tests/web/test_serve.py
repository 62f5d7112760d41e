"""`rota serve` and `rota token`: where the service listens, whom it lets in, how it stops."""

import subprocess
import sys
import tomllib
from pathlib import Path

import httpx

from rota.web.tokens import Tokens, fingerprint, new_token, well_formed
from tests.requirement import requirement
from tests.web.serving import serving


def rota(folder: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "rota", *words], cwd=folder, capture_output=True, text=True, check=False
    )


@requirement("1.3")
def test_a_service_runs_what_is_submitted_and_stops_kindly(tmp_path: Path) -> None:
    with serving(tmp_path, "memory://") as served, httpx.Client(base_url=served.url) as http:
        assert http.get("/health").json() == {"status": "ok"}
        assert http.get("/api/v1/me").status_code == 401
        http.headers["Authorization"] = f"Bearer {served.token}"
        assert http.get("/ready").json() == {"status": "ready"}
        made = http.post("/api/v1/runs", json={"task": "add", "args": {"a": 2}}).json()["run"]
        assert http.get(f"/api/v1/runs/{made}", params={"wait": 30}, timeout=40).json()["result"] == 3
        served.process.terminate()
        assert served.process.wait(30) == 0


def test_other_machines_need_a_token(tmp_path: Path) -> None:
    (tmp_path / "jobs.py").write_text("from rota import Rota\napp = Rota('memory://')\n")
    for options, advice in (([], "set ROTA_TOKEN"), (["--no-token"], "--no-token is for loopback only")):
        refused = rota(tmp_path, "-A", "jobs:app", "serve", "--host", "0.0.0.0", *options)
        assert refused.returncode == 2
        assert advice in refused.stderr


def test_a_port_that_is_taken_is_named(tmp_path: Path) -> None:
    with serving(tmp_path, "memory://", "--no-token") as served:
        port = served.url.rpartition(":")[2]
        refused = rota(tmp_path, "-A", "jobs:app", "serve", "--port", port)
        assert (refused.returncode, "cannot listen on" in refused.stderr) == (2, True)


def test_a_new_token_is_shown_once_with_the_lines_for_the_file(tmp_path: Path) -> None:
    made = rota(tmp_path, "token", "new", "ci", "--role", "submitter", "--tasks", "add")
    token = made.stdout.strip()
    file = tmp_path / "tokens.toml"
    file.write_text(made.stderr.partition("\n")[2])
    assert tomllib.loads(file.read_text())["ci"]["sha256"] == fingerprint(token)
    found = Tokens(file=file).find(token)
    assert found is not None
    assert (found.name, found.tasks, well_formed(token)) == ("ci", ("add",), True)
    assert Tokens(file=file).find(new_token()) is None


def test_the_file_of_tokens_is_read_again_when_it_changes(tmp_path: Path) -> None:
    file = tmp_path / "tokens.toml"
    first, second = new_token(), new_token()
    file.write_text(f'[ada]\nsha256 = ["{fingerprint(first)}", "{fingerprint(second)}"]\nrole = "viewer"\n')
    tokens = Tokens(file=file)
    assert tokens.find(first) is not None
    file.write_text(f'[ada]\nsha256 = "{fingerprint(second)}"\nrole = "viewer"\nexpires = 2020-01-01T00:00:00Z\n')
    assert tokens.find(first) is None
    assert tokens.find(second) is None, "it has expired"
    file.write_text("broken")
    assert tokens.find(second) is None


def test_a_forged_token_is_nobodys(tmp_path: Path) -> None:
    token, file = new_token(), tmp_path / "tokens.toml"
    file.write_text(f'[ada]\nsha256 = "{fingerprint(token)}"\nrole = "admin"\n')
    tokens = Tokens(file=file)
    assert tokens.find(token) is not None
    forged = [
        new_token(),
        token[:-1],
        token + "0",
        token.upper(),
        token[5:],
        fingerprint(token),
        "rota_",
        "\x00",
        "é" * 40,
    ]
    assert [each for each in forged if tokens.find(each) is not None] == []


def test_a_token_has_a_checksum() -> None:
    made = new_token()
    assert well_formed(made)
    for wrong in ("", "rota_", "rota_x", f"{made[:-1]}!", made.replace("rota_", "")):
        assert not well_formed(wrong)
