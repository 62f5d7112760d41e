"""The service about itself: health, readiness, status, and who calls."""

from typing import Any

from msgspec import Struct

from rota.views.values import iso
from rota.web.problems import Problem
from rota.web.rights import Right
from rota.web.routes import API, Answer, Call, NoQuery, Route, get


class Word(Struct, frozen=True):
    status: str


class Me(Struct, frozen=True):
    """`namespaces`: those at /ns/NAME that the caller may enter."""

    name: str
    rights: list[str]
    tasks: list[str]
    expires: str | None
    namespaces: list[str] = []


async def health(call: Call[NoQuery, None]) -> Answer:
    """200 while this process works. It says nothing else, because everybody may ask."""
    if any(not loop.alive for loop in call.app.status().loops):
        raise Problem(503, "a loop of this process is dead")
    return Answer(Word("ok"))


async def ready(call: Call[NoQuery, None]) -> Answer:
    """200 if the store answers and the engine of this process, if it has one, has claimed lately."""
    if not await call.app.health():
        raise Problem(503, "not ready", headers={"Retry-After": "1"})
    return Answer(Word("ready"))


async def status(call: Call[NoQuery, None]) -> Answer:
    return Answer(call.app.status())


async def me(call: Call[NoQuery, None]) -> Answer:
    who = call.principal
    names = [name for name in call.request.app.state.namespaces if who.enters(name)]
    return Answer(Me(who.name, sorted(who.rights), list(who.tasks), iso(who.expires), names))


ROUTES: list[Route[Any, Any]] = [
    get("/health", "Is this process alive?", None, health, Word, open=True, also=(503,)),
    get("/ready", "Can this process do its work?", None, ready, Word, open=True, also=(503,)),
    get("/status", "The engine of this process", Right.READ, status, {"type": "object"}),
    get(f"{API}/me", "Who calls, and what the caller may do", None, me, Me),
]
