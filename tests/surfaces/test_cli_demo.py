"""`rota demo`, which `make run` starts: a shop with three workers, and the control room on this machine."""

import json
import re
import signal
import socket
from http.client import HTTPConnection
from pathlib import Path

from tests.surfaces.project import Project, line_with

MAKEFILE = Path(__file__).parents[2] / "Makefile"
TROUBLES = {"newsletter", "train_model", "transcode", "import_order", "read_prices", "sync_customers"}


def ask(address: str, path: str, token: str | None = None, body: object = None) -> tuple[int, bytes]:
    host = address.removeprefix("http://").partition("/")[0]
    headers = {"Content-Type": "application/json", "Origin": f"http://{host}"}
    headers |= {} if token is None else {"Authorization": f"Bearer {token}"}
    connection = HTTPConnection(host, timeout=30)
    connection.request("GET" if body is None else "POST", path, None if body is None else json.dumps(body), headers)
    answer = connection.getresponse()
    found = answer.status, answer.read()
    connection.close()
    return found


def workers_of(address: str, token: str) -> set[str]:
    items = json.loads(ask(address, "/api/v1/workers", token)[1])["items"]
    return {worker["name"] for worker in items if worker["name"].startswith("shop-")}


def test_make_run_starts_the_demo_after_the_pages_are_built() -> None:
    recipe = re.search(r"^run: (.*)\n\t(.*)$", MAKEFILE.read_text(), re.MULTILINE)
    assert recipe is not None
    assert "$(PAGES)" in recipe[1]
    assert recipe[2] == "@$(BIN)/rota demo $(ARGS)"


def test_the_demo_prints_an_address_where_its_token_logs_in(project: Project) -> None:
    with project.start("demo", "--port", "0", "--rate", "20") as demo:
        told = line_with(demo, "control room: ")
        found = re.search(r"(http://127\.0\.0\.1:\d+)/#token=(rota_\S+)", told)
        assert found is not None, told
        address, token = found[1], found[2]
        assert ask(address, "/health")[0] == 200
        assert ask(address, "/api/v1/tasks")[0] == 401
        assert ask(address, "/api/v1/session", body={"token": token})[0] == 204
        status, text = ask(address, "/api/v1/tasks", token)
        assert status == 200, text
        assert {task["task"] for task in json.loads(text)["items"]} >= TROUBLES
        while len(workers_of(address, token)) < 3:  # the command of the last one may still start
            assert demo.poll() is None
        demo.send_signal(signal.SIGINT)
        rest, _ = demo.communicate(timeout=60)
    assert demo.returncode == 0, rest
    assert f"rota demo ended; look closer: rota runs ls --url sqlite:///{project.folder}/.rota/demo.db" in rest
    assert "Traceback" not in rest


def test_a_demo_says_that_its_port_is_busy(project: Project) -> None:
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        busy = str(taken.getsockname()[1])
        done = project.rota("demo", "--seconds", "1", "--port", busy)
    assert done.code == 2
    assert done.err.startswith(f"rota: cannot listen on http://127.0.0.1:{busy}: Address already in use")
    assert project.rota("demo", "--port", "70000").err == "rota: --port 70000: from 0 to 65535\n"
    assert "leave out --terminal" in project.rota("demo", "--port", "1", "--terminal").err
