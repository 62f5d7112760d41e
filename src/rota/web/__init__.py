"""rota over HTTP: `asgi(app, auth=…)` makes an ASGI application of an app."""

from rota.web.gate import Auth
from rota.web.lifespans import lifespan
from rota.web.rights import Principal, Right
from rota.web.service import asgi
from rota.web.tokens import Tokens

__all__ = ["Auth", "Principal", "Right", "Tokens", "asgi", "lifespan"]
