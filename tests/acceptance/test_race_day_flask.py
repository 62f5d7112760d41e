"""Row 3.11 of the fourth source document in the example itself: the day at the races in a Flask app."""

import json
import signal
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from examples.race_day.app import app
from examples.race_day.flask_site import create_app
from examples.race_day.racing import PARIS, milliseconds
from tests.processes import Process
from tests.requirement import requirement

WRITTEN = "15112099"


@pytest.fixture
def http() -> Iterator[FlaskClient]:
    with app.bound_to("memory://"):
        yield create_app(TESTING=True).test_client()


def read(answer: TestResponse) -> Any:
    return answer.get_json()


async def result_of_today() -> Any:
    (run,) = [run async for run in app.runs(task="today")]
    return await run.result(timeout=60)


def races(**hours: int) -> list[dict[str, object]]:
    """Races of the day by the hour of their start, in milliseconds."""
    return [
        {"id": race, "start": milliseconds(datetime(2099, 11, 15, hour, tzinfo=PARIS))} for race, hour in hours.items()
    ]


@requirement("3.11")
def test_3_11_a_flask_app_starts_the_day_looks_at_it_and_forgets_it(http: FlaskClient) -> None:
    started = read(http.post(f"/days/{WRITTEN}/start"))
    assert (len(started), set(started.values())) == (12, {"accepted"})
    assert set(read(http.post(f"/days/{WRITTEN}/start")).values()) == {"joined"}
    seen = read(http.get(f"/days/{WRITTEN}"))
    assert (seen["done"], seen["steps"]["clear_log"]["state"]) == (False, "due")
    assert read(http.get("/days/2099-11-15")) == seen, "the other way to write the day"
    assert http.post(f"/days/{WRITTEN}/reset").status_code == 200
    wrong = http.post("/days/31022099/start")
    assert (wrong.status_code, "31022099" in read(wrong)["error"]) == (422, True)


@requirement("3.5")
@requirement("3.7")
@requirement("3.11")
@requirement("3.d")
def test_3_11_a_flask_app_plans_a_chat_and_a_result_per_race_and_follows_what_moves(http: FlaskClient) -> None:
    path = f"/days/{WRITTEN}/races"
    first = read(http.post(path, json=races(R1=13, R2=14)))["report"]
    assert first == "chats: 2 planned; results: 2 planned"
    second = read(http.post(path, json=races(R1=15)))["report"]
    assert second == "chats: 1 moved, 1 cancelled; results: 1 moved, 1 cancelled"
    depths = app.portal.call(app.depths)
    assert (depths["autochat"].queued, depths["watch_results"].queued) == (1, 1)
    assert http.post(path, json=[{"id": "R1"}]).status_code == 422


@requirement("3.11")
def test_3_11_the_process_that_serves_does_the_day(tmp_path: Path, unused_tcp_port: int) -> None:
    url = f"sqlite:///{tmp_path / 'rota.db'}"
    written = f"{datetime.now(PARIS):%d%m%Y}"
    site_day = f"http://127.0.0.1:{unused_tcp_port}/days/{written}"
    command = ("-m", "flask", "--app", "examples.race_day.flask_site", "run", "--port", str(unused_tcp_port))
    with Process(*command, env={"ROTA_URL": url}) as site:
        site.wait_for("Running on")
        with urlopen(Request(f"{site_day}/start", method="POST")) as answer:
            assert set(json.load(answer).values()) == {"accepted"}
        with app.bound_to(url):
            assert app.portal.call(result_of_today) == written
        with urlopen(site_day) as answer:
            assert json.load(answer)["steps"]["today"]["state"] == "done"
        site.signal(signal.SIGINT)
        site.wait()
