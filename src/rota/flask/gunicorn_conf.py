"""Starts the engine in every worker of gunicorn, also before its first request:
`gunicorn -c python:rota.flask.gunicorn_conf "myapp:create_app()"`. A configuration file of your own can import both
functions."""

from typing import Any


def post_worker_init(worker: Any) -> None:
    engine = _engine_of(worker)
    if engine is not None:
        engine.start("gunicorn has started this worker", worker)


def worker_exit(server: Any, worker: Any) -> None:
    engine = _engine_of(worker)
    if engine is not None:
        engine.stop()


def _engine_of(worker: Any) -> Any:
    return getattr(getattr(worker, "wsgi", None), "extensions", {}).get("rota.engine")
