"""rota.flask: handlers have the application context, commands work, and only processes that serve run the engine."""

import asyncio
import os
import signal
import sys
import urllib.request
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from flask import Flask, current_app, g
from flask_sqlalchemy import SQLAlchemy
from sqlalchemy import text

import rota.flask
from rota import InvalidOptions, Rota
from rota.cli.options.target import load
from rota.domain.run import State
from tests.django.served.site import Site, more_servers

PYTHON = (sys.executable, "-m")
FACTORY = "tests.web.served.flask_site:create_app()"
FLASK = (*PYTHON, "flask", "--app", "tests.web.served.flask_site", "run", "--port", "PORT")
RUN = (*PYTHON, "tests.web.served.flask_run", "PORT")
GUNICORN = (*PYTHON, "gunicorn", "-b", "127.0.0.1:PORT", "--graceful-timeout", "6", "--no-control-socket")
CONF = ("-c", "python:rota.flask.gunicorn_conf")
WAITRESS = (*PYTHON, "waitress", "--listen", "127.0.0.1:PORT", "--call", "tests.web.served.flask_site:create_app")
UWSGI = (
    *(sys.executable, "-c", "import pyuwsgi, sys; pyuwsgi.run(sys.argv[1:])", "--http-socket", "127.0.0.1:PORT"),
    *("--master", "--die-on-term", "--module", "tests.web.served.flask_site:flask_app"),
)
SETUPS: dict[str, tuple[tuple[str, ...], int, bool]] = {
    "gunicorn preload": ((*GUNICORN, *CONF, "--preload", "-w", "2", FACTORY), 2, False),
    "flask run debug": ((*FLASK, "--debug"), 1, False),
    "flask run": (FLASK, 1, False),
    "app.run, a request": (RUN, 1, True),
    "app.run debug, a request": ((*RUN, "--debug"), 1, True),
    "gunicorn": ((*GUNICORN, *CONF, FACTORY), 1, False),
    "gunicorn 2": ((*GUNICORN, *CONF, "-w", "2", FACTORY), 2, False),
    "gunicorn 4": ((*GUNICORN, *CONF, "-w", "4", FACTORY), 4, False),
    "gunicorn preload, a request": ((*GUNICORN, "--preload", FACTORY), 1, True),
    "waitress, a request": (WAITRESS, 1, True),
    "uwsgi, a request": (UWSGI, 1, True),
}
"""By name: the command, how many processes serve, and whether a request has to start the engine."""


async def test_every_handler_has_an_application_context_and_teardown_runs() -> None:
    site, app, ended = Flask("shop"), Rota("memory://"), list[str]()
    site.config["SQLALCHEMY_DATABASE_URI"] = "sqlite://"
    db = SQLAlchemy(site)
    site.teardown_appcontext(lambda error: ended.append(type(error).__name__))

    @app.task
    def plain() -> str:
        g.seen = getattr(g, "seen", 0) + 1
        assert db.session.execute(text("select 1")).scalar() == g.seen == 1
        return current_app.name

    @app.task
    async def on_loop() -> str:
        g.seen = getattr(g, "seen", 0) + 1
        await asyncio.sleep(0)
        return f"{current_app.name} {g.seen}"

    rota.flask.init_app(site, app)
    rota.flask.init_app(site, app)
    assert site.extensions["rota"] is app
    async with app:
        runs = [await task.submit() for task in (plain, on_loop, plain, on_loop)]
        assert [await run.result(timeout=10) for run in runs] == ["shop", "shop 1"] * 2
    assert ended == ["NoneType"] * 4
    with site.app_context():
        assert db.session.registry.has() is False, "no session is left"
    with pytest.raises(InvalidOptions, match="another app of rota is in this Flask app"):
        rota.flask.init_app(site, Rota("memory://"))


def test_commands_shells_and_tests_start_no_engine(tmp_path: Path) -> None:
    site, app = Flask("shop"), Rota(f"sqlite:///{tmp_path}/a.db")

    @app.task
    def work(number: int) -> None: ...

    site.config["TESTING"] = True
    rota.flask.init_app(site, app)
    site.get("/")(lambda: str(work.submit_sync(7).id))
    id = site.test_client().get("/").text
    done = site.test_cli_runner().invoke(args=["rota", "runs", "show", id, "--json"])
    assert (done.exit_code, app.status().running) == (0, False), done.output
    assert site.test_cli_runner().invoke(args=["rota", "runs", "show", "nope"]).exit_code != 0
    app.stop_sync()


def test_a_server_without_threads_gets_no_engine(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    uwsgi: Any = ModuleType("uwsgi")
    uwsgi.has_threads = 0
    monkeypatch.setitem(sys.modules, "uwsgi", uwsgi)
    site, app = Flask("shop"), Rota("memory://")
    rota.flask.init_app(site, app)
    site.test_client().get("/")
    site.test_client().get("/")
    assert [record.getMessage() for record in caplog.records if record.name == "rota.flask"] == [
        f"no engine in this process (pid {os.getpid()}): uwsgi runs no threads; start it with --enable-threads"
    ]


def test_a_factory_is_an_app_for_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SERVED_DIR", str(tmp_path))
    for reference in (FACTORY, "tests.web.served.flask_site:flask_app"):
        app = load(reference)
        assert "tick" in app.tasks
        assert load(reference) is app, "a factory is called once"
    with pytest.raises(InvalidOptions, match=r"nothing\(\) in tests.web.served.flask_site is missing"):
        load("tests.web.served.flask_site:nothing()")


async def served(name: str, folder: Path, ticks: int) -> None:
    command, processes, asks = SETUPS[name]
    grace = "60" if "gunicorn" in name else "0.5"  # longer than gunicorn waits for its workers
    async with Site(folder, *command, path=more_servers() if command is UWSGI else "", ROTA_GRACE=grace) as site:
        if asks:
            await asyncio.to_thread(_ask, site)
        await site.workers(processes)
        nominal = await site.ticks(ticks)
        assert {round(later - earlier) for earlier, later in pairwise(nominal)} <= {1}
        assert site.log.count("the engine starts in this process") == processes, site.log
        for task in ("whose", "whose_child"):
            handle = await Rota(site.url).submit(task)
            assert await handle.result(timeout=30) == "shop"
        run = await site.lingering()
        reloads = "debug" in name  # the reloader kills its child at a SIGTERM: people press Ctrl-C
        site.stop(signal.SIGINT if reloads else signal.SIGTERM, group=reloads)
        assert await site.state(run) is State.QUEUED, site.log


def _ask(site: Any) -> None:
    while True:
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{site.port}/", timeout=10).read()
            return
        except OSError:
            assert site.process.poll() is None, site.log
            os.sched_yield()


async def test_a_tick_makes_one_run_in_preloaded_workers(tmp_path: Path) -> None:
    await served("gunicorn preload", tmp_path, 2)


@pytest.mark.soak
@pytest.mark.parametrize("name", SETUPS)
async def test_a_tick_makes_one_run_under_every_server(name: str, tmp_path: Path) -> None:
    await served(name, tmp_path, 10)
