"""The agents, in place of real ones: an HTTP server that remembers each call."""

from email.message import Message
from typing import Any, NamedTuple

from examples.services import StandIn


class Asked(NamedTuple):
    agent: str
    message: str
    key: str
    """The Idempotency-Key: the id of the run."""


class Agents(StandIn[Asked]):
    def __init__(self) -> None:
        super().__init__(_heard, lambda _: {"answer": "done"})


def _heard(path: str, body: Any, headers: Message) -> Asked:
    _, _, agent, _ = path.split("/")
    return Asked(agent, body["message"], headers["Idempotency-Key"])
