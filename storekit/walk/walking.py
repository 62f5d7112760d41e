"""The walk: visit up to a number of states, breadth first. Each step must keep the promises, and all runs can end."""

from array import array
from collections import deque
from collections.abc import Callable, Iterator
from random import Random
from typing import Any, NamedTuple

from rota.domain import lifecycle
from rota.domain.run import after
from rota.domain.spec import TaskSpec
from rota.store import ClaimRequest, Command
from storekit.walk import promising
from storekit.walk.acting import Event, events, learn, moved
from storekit.walk.books import NOTHING, Frozen, WalkedStore
from storekit.walk.worlds import BASE, LEASE, SCHEDULE, STEP, TASK, People, World

PAUSE = 0.001
ANSWERS_KEPT = 100_000
ROUNDS = 12
"""Rounds of a healthy worker after which unfinished runs count as stuck."""


class Broken(AssertionError):
    """A broken promise, with the shortest path to it."""


class Place(NamedTuple):
    """One state of a world."""

    frozen: Frozen
    people: People

    @property
    def key(self) -> int:
        return hash((self.frozen.hash, self.people.key))


Path = Iterator[tuple[Event, Any, Place]]
"""(event, answer of the store, state after it) for each event."""


class Walk:
    """The states that a walk has visited. Of a state whose events are done, only its hash and the path to it are
    kept."""

    def __init__(self, world: World, make: Callable[[TaskSpec], WalkedStore] = WalkedStore) -> None:
        self.world = world
        self.store = make(world.spec)
        self.states = 0
        self.steps = 0
        self.endings = 0
        self.complete = False
        self._answers: dict[tuple[int, tuple[Any, ...]], tuple[Any, Frozen]] = {}
        self._books: dict[int, Frozen] = {}
        self._seen: set[int] = set()
        self._can_end: set[int] = set()
        self._parents = array("q")
        self._choices = array("h")

    def start(self) -> Place:
        book = self.store.turn_to(NOTHING, BASE)
        self.store.run_sync(self.store.declare([SCHEDULE]))
        return Place(book.freeze(), People())

    def go(self, most: int) -> "Walk":
        """Walk until all states are visited, or `most` of them."""
        frontier = deque([(self.start(), -1, -1)])
        self._seen.add(frontier[0][0].key)
        while frontier and self.states < most:
            place, parent, choice = frontier.popleft()
            me = self.states
            self._parents.append(parent)
            self._choices.append(choice)
            self.states += 1
            self.endings += promising.ended(place.frozen)
            self._check_end(place, me)
            for choice, event in enumerate(events(self.world, place.people)):
                new = self._step(place, event, me)
                key = new.key
                if key not in self._seen:
                    self._seen.add(key)
                    frontier.append((new, me, choice))
        self.complete = not frontier
        return self

    def _step(self, place: Place, event: Event, me: int) -> Place:
        self.steps += 1
        try:
            return self.happen(place, event)[0]
        except AssertionError as error:
            raise Broken(self._report(me, str(event), error)) from error

    def happen(self, place: Place, event: Event, pause: float = 0.0) -> tuple[Place, Any]:
        """Return the state after an event that happens `pause` seconds later, and the answer of the store."""
        before, answer = place.frozen, None
        if pause:
            before = before._replace(now=after(before.now, pause)).hashed()
        if event.verb:
            answer, changed = self._control(before, event)
        else:
            changed = before._replace(now=moved(before.now, event)).hashed()
        people = learn(self.world, place.people, event, answer)
        promising.check(self.world, before, event, answer, changed, people)
        return Place(changed, people), answer

    def _control(self, before: Frozen, event: Event) -> tuple[Any, Frozen]:
        """Return the answer of the store and its state after the call. Many states differ only in what workers know:
        the store is called once for all of them."""
        question = (before.hash, event.key)
        if question not in self._answers:
            if len(self._answers) >= ANSWERS_KEPT:
                self._answers.clear()
                self._books.clear()
            book = self.store.turn_to(before, before.now)
            answer = self.store.run_sync(getattr(self.store, event.verb)(*event.args))
            changed = book.freeze()
            promising.check_final(before, changed)
            self._answers[question] = answer, self._books.setdefault(changed.hash, changed)
        return self._answers[question]

    def _check_end(self, place: Place, me: int) -> None:
        """Check that nothing is stuck: a healthy worker ends every run, even if the other workers do nothing."""
        passed: list[int] = []
        frozen = place.frozen
        for _ in range(ROUNDS):
            key = frozen.hash
            if key in self._can_end or promising.ended(frozen):
                break
            passed.append(key)
            frozen = self._look_after(frozen)
        else:
            raise Broken(self._report(me, "somebody looks after it", AssertionError("some run never ends")))
        self._can_end.update(passed)

    def _look_after(self, frozen: Frozen) -> Frozen:
        store = self.store
        book = store.turn_to(frozen, frozen.now + 2 * STEP)
        store.run_sync(store.control(Command.RESUME, [run.id for run in book.runs.values()]))
        claim = store.run_sync(store.claim(ClaimRequest("zed", book.last_claim("zed") + 1, [TASK], 9, LEASE)))
        settlements = [lifecycle.settlement_of(run, lifecycle.Lost()) for run in claim.lapsed]
        settlements += [lifecycle.settlement_of(run, lifecycle.Succeeded()) for run in claim.runs]
        store.run_sync(store.settle(settlements))
        return book.freeze()

    def wander(self, dice: Random, most: int) -> Path:
        """Yield a random path through the world, far beyond the states that a walk can visit.

        A millisecond passes between two events, so that no two of them happen at one instant on other stores either.
        """
        place = self.start()
        for _ in range(most):
            choices = list(events(self.world, place.people))
            if not choices:
                break
            event = dice.choice(choices)
            place, answer = self.happen(place, event, PAUSE)
            yield event, answer, place

    def path(self, state: int) -> Path:
        """Yield the shortest path to a state."""
        choices: list[int] = []
        while self._parents[state] >= 0:
            choices.append(self._choices[state])
            state = self._parents[state]
        place = self.start()
        for choice in reversed(choices):
            event = list(events(self.world, place.people))[choice]
            place, answer = self.happen(place, event)
            yield event, answer, place

    def _report(self, state: int, last: str, error: AssertionError) -> str:
        way = [str(event) for event, _, _ in self.path(state)]
        return "\n  ".join([f"{error}. The way there:", *way, last])


def walk(world: World, most: int) -> Walk:
    return Walk(world).go(most)
