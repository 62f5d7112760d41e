"""The troubles of a chaos run: which fault comes next, on whom, and how each one is healed."""

import random
import time
from collections import Counter
from collections.abc import Callable

from tests.chaos import history
from tests.chaos.crew import LEASE, Crew, Member
from tests.chaos.places import Place, ServerPlace

Trouble = Callable[[], None]

GAP = (0.1, 1.2)
"""Seconds between two faults, from and to."""
FREEZE_TRIES = 20


class Troubles:
    """Draws faults from a seed. Each fault heals by itself after a while; `heal` ends all that still last."""

    def __init__(self, place: Place, crew: Crew, seed: int) -> None:
        self._place = place
        self._crew = crew
        self._random = random.Random(seed)
        self._healing: list[tuple[float, Trouble]] = []
        self.counts: Counter[str] = Counter()
        self.problems: list[str] = []
        common = [self.kill_worker] * 4 + [self.freeze_worker] * 4 + [self.end_worker] * 2
        common += [self.kill_submitter, self.kill_renewer]
        self._kinds: list[Trouble] = [*common, *self._of_server(place)]

    def _of_server(self, place: Place) -> list[Trouble]:
        if not isinstance(place, ServerPlace):
            return []
        connection = [self.cut, self.lose_replies, self.freeze_connections, self.delay, self.drop_clients]
        return [*connection * 2, self.kill_server, self.restart_server, self.freeze_server]

    def cause(self, seconds: float) -> None:
        """One fault after another, for so many seconds."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            self._sleep(self._random.uniform(*GAP))
            trouble = self._random.choice(self._kinds)
            history.write("fault", kind=trouble.__name__)
            self.counts[trouble.__name__] += 1
            trouble()

    def heal(self) -> None:
        for _, cure in self._healing:
            cure()
        self._healing = []
        self._restart_ended()

    def kill_worker(self) -> None:
        self._kill(self._random.choice(self._crew.workers))

    def kill_submitter(self) -> None:
        self._kill(self._random.choice(self._crew.submitters))

    def kill_renewer(self) -> None:
        self._random.choice(self._crew.workers).kill_renewer()

    def freeze_worker(self) -> None:
        """Not while the worker holds a lock that would stop everybody, whatever rota does."""
        worker = self._random.choice(self._crew.workers)
        if worker.frozen or worker.ended:
            return
        for _ in range(FREEZE_TRIES):
            worker.freeze()
            if not self._place.is_locked():
                break
            worker.thaw()
        else:
            return
        self._cure(self._random.uniform(0.3, 2.5) * LEASE, worker.thaw)

    def end_worker(self) -> None:
        """A deploy: SIGTERM, the exit code 0, and a new process."""
        worker = self._random.choice(self._crew.workers)
        if worker.frozen:
            worker.thaw()
        if (code := worker.end(self._heal_and_wait)) != 0:
            self.problems.append(f"{worker.name} ended with {code} after SIGTERM")
        worker.start()

    def cut(self) -> None:
        self._server.proxy.cut()

    def lose_replies(self) -> None:
        """The server does what it is asked, and the answer never arrives."""
        self._server.proxy.fail_next("cut after", times=self._random.randint(1, 4))

    def freeze_connections(self) -> None:
        self._server.proxy.black_hole()
        self._cure(self._random.uniform(0.2, 1.5) * LEASE, self._server.proxy.heal)

    def delay(self) -> None:
        self._server.proxy.delay(0.05)
        self._cure(1.0, self._server.proxy.heal)

    def drop_clients(self) -> None:
        if not self._server_frozen:
            self._server.drop_clients()

    def kill_server(self) -> None:
        self._stop_server(self._server.server.kill)

    def restart_server(self) -> None:
        self._stop_server(self._server.server.stop)

    def freeze_server(self) -> None:
        """Nothing else happens meanwhile: an order to a frozen server would wait for it."""
        self._server.server.freeze()
        self._server_frozen = True
        self._sleep(self._random.uniform(0.2, 1.5))
        self._server.server.thaw()
        self._server_frozen = False

    _server_frozen = False

    def _stop_server(self, stop: Trouble) -> None:
        stop()
        self._sleep(self._random.uniform(0.0, 1.0))
        self._server.server.start()

    @property
    def _server(self) -> ServerPlace:
        assert isinstance(self._place, ServerPlace)
        return self._place

    def _kill(self, member: Member) -> None:
        member.kill()
        member.start()

    def _restart_ended(self) -> None:
        """As an init system does: a worker that finds no store at its start ends with an error, and is tried again."""
        for member in self._crew.everybody:
            if member.ended:
                if member.has_started:
                    self.problems.append(f"{member.name} ended by itself")
                member.start()

    def _cure(self, seconds: float, cure: Trouble) -> None:
        self._healing.append((time.monotonic() + seconds, cure))

    def _sleep(self, seconds: float) -> None:
        """Wait, and heal meanwhile what is due to be healed."""
        until = time.monotonic() + seconds
        while (now := time.monotonic()) < until:
            self._heal_and_wait(min(0.02, until - now))
            self._restart_ended()

    def _heal_and_wait(self, seconds: float) -> None:
        due = [(at, cure) for at, cure in self._healing if at <= time.monotonic()]
        self._healing = [item for item in self._healing if item not in due]
        for _, cure in due:
            cure()
        time.sleep(seconds)
