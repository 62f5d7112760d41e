"""The service about itself: health, readiness, status, and who calls."""

import re
from typing import Annotated, Any

from msgspec import Meta, Struct

from rota.app.core import core_of
from rota.settings.model import Colour, Settings
from rota.views.values import iso
from rota.web.problems import Problem
from rota.web.rights import ROLES, Right
from rota.web.routes import API, Answer, Call, NoQuery, Route, get


class Word(Struct, frozen=True):
    status: str


class ReadyQuery(Struct, frozen=True, forbid_unknown_fields=True):
    """`max_age`: at most so many seconds ago the engine of this process has claimed."""

    max_age: Annotated[float, Meta(gt=0)] | None = None


class Environment(Struct, frozen=True):
    """Where the app runs. Pages show it in this colour, so that nobody acts on another one than is meant."""

    name: str
    colour: Colour


COLOURS: list[tuple[str, Colour]] = [
    (r"prod|live", "red"),
    (r"stag|pre|uat|qa", "amber"),
    (r"test|ci$", "blue"),
    (r"dev|local", "green"),
    (r"demo", "violet"),
]
"""How names begin, and their colours."""


def environment_of(settings: Settings) -> Environment | None:
    name, chosen = settings.environment, settings.environment_colour
    if name is None:
        return None
    by_name: list[Colour] = [colour for begins, colour in COLOURS if re.match(begins, name, re.IGNORECASE)]
    return Environment(name, chosen or (*by_name, "grey")[0])


class Me(Struct, frozen=True):
    """`role`: null if the rights are those of no role. `namespaces`: those at /ns/NAME that the caller may enter."""

    name: str
    role: str | None
    rights: list[str]
    tasks: list[str]
    expires: str | None
    namespaces: list[str] = []
    environment: Environment | None = None


async def health(call: Call[NoQuery, None]) -> Answer:
    """200 while this process works. It says nothing else, because everybody may ask."""
    engine = core_of(call.app).lifecycle.engine
    if any(not loop.alive for loop in call.app.status().loops):
        raise Problem(503, "a loop of this process is dead", headers={"Retry-After": "10"})
    if engine is not None and engine.given_up:  # it may have a loop of its own, in another thread than this one
        raise Problem(503, "the event loop of the engine does not turn", headers={"Retry-After": "10"})
    return Answer(Word("ok"))


async def ready(call: Call[ReadyQuery, None]) -> Answer:
    """200 if the store answers and the engine of this process, if it has one, has claimed lately."""
    engine, most = core_of(call.app).lifecycle.engine, call.query.max_age
    old = engine is not None and most is not None and engine.claimed_for > most
    if old or not await call.app.health():
        raise Problem(503, "not ready", headers={"Retry-After": "1"})
    return Answer(Word("ready"))


async def status(call: Call[NoQuery, None]) -> Answer:
    return Answer(call.app.status())


async def me(call: Call[NoQuery, None]) -> Answer:
    who = call.principal
    names = [name for name in call.request.app.state.namespaces if who.enters(name)]
    role = next((role for role, rights in ROLES.items() if rights == who.rights), None)
    place = environment_of(call.app.settings)
    return Answer(Me(who.name, role, sorted(who.rights), list(who.tasks), iso(who.expires), names, place))


ROUTES: list[Route[Any, Any]] = [
    get("/health", "Is this process alive?", None, health, Word, open=True, also=(503,)),
    get("/ready", "Can this process do its work?", None, ready, Word, ReadyQuery, open=True, also=(422, 503)),
    get("/status", "The engine of this process", Right.READ, status, {"type": "object"}),
    get(f"{API}/me", "Who calls, and what the caller may do", None, me, Me),
]
