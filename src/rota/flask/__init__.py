"""rota in a Flask app: handlers have its application context, and its processes that serve run the engine.

rota.flask.init_app(flask_app, app)
"""

from rota.errors import MissingExtra

try:
    from rota.flask.extension import init_app
except ImportError as error:
    if error.name is None or not error.name.startswith(("flask", "werkzeug", "click")):
        raise
    raise MissingExtra(f'rota.flask needs {error.name}: pip install "rota[flask]"') from None

__all__ = ["init_app"]
