"""The model, in place of a real one: an HTTP server that thinks for as long as whoever plays the world likes."""

from email.message import Message
from typing import Any, NamedTuple

from examples.services import StandIn


class Thought(NamedTuple):
    run: str
    step: int
    message: str


class TheModel(StandIn[Thought]):
    """Answers at once, except calls that `hold` names: those wait for `release`."""

    def __init__(self) -> None:
        super().__init__(_heard, self._answer)
        self._held: set[tuple[str, int]] = set()

    def hold(self, message: str, step: int) -> None:
        with self.news:
            self._held.add((message, step))

    def release(self) -> None:
        with self.news:
            self._held.clear()
            self.news.notify_all()

    def reached(self, message: str, step: int, times: int = 1) -> str:
        """Wait until somebody works on this step; return the run."""

        def calls() -> list[Thought]:
            return [each for each in self.asked if (each.message, each.step) == (message, step)]

        self.until(lambda _: len(calls()) >= times)
        return calls()[-1].run

    def _answer(self, thought: Thought) -> object:
        with self.news:
            self.news.wait_for(lambda: (thought.message, thought.step) not in self._held, 60)
        return {"text": f"step {thought.step} of {thought.message}"}


def _heard(path: str, body: Any, headers: Message) -> Thought:
    return Thought(body["run"], body["step"], body["message"])
