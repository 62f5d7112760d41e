"""What the memory store keeps beside the runs: ids that submitters gave, stubs of deleted runs, and callbacks."""

from collections.abc import Sequence

from rota.domain.run import CallbackRun, Run, State
from rota.store import OWN_ID_MEMORY


class OwnIds:
    def __init__(self) -> None:
        self._fingerprints: dict[str, str] = {}
        self.stubs: dict[str, tuple[State, float]] = {}
        """The forgotten runs: their final state, and when they ended."""
        self._callbacks: dict[str, Sequence[CallbackRun]] = {}

    def keep_callbacks(self, run: str, callbacks: Sequence[CallbackRun]) -> None:
        self._callbacks[run] = callbacks

    def take_callbacks(self, run: str) -> Sequence[CallbackRun]:
        return self._callbacks.pop(run, ())

    def fingerprint(self, id: str) -> str | None:
        return self._fingerprints.get(id)

    def keep_fingerprint(self, id: str, fingerprint: str) -> None:
        self._fingerprints[id] = fingerprint

    def keep_stub(self, run: Run, now: float) -> None:
        """`run` is about to be deleted: keep its id, its state and its fingerprint, if its submitter gave the id."""
        if run.id in self._fingerprints:
            self.stubs[run.id] = run.state, run.finished_at or now

    def forget_stubs(self, now: float) -> None:
        for id in [id for id, (_, ended_at) in self.stubs.items() if ended_at <= now - OWN_ID_MEMORY]:
            del self.stubs[id], self._fingerprints[id]
