"""What the memory store keeps beside the runs: ids that submitters gave, stubs of deleted runs, callbacks and fans."""

from collections.abc import Mapping, Sequence

from rota.domain.fan import Fan, fan_of, gather_id
from rota.domain.run import CallbackRun, Run, State
from rota.store import ID_MEMORY, OWN_ID_MEMORY


class OwnIds:
    def __init__(self) -> None:
        super().__init__()
        self._fingerprints: dict[str, str] = {}
        self.stubs: dict[str, tuple[State, float]] = {}
        """The forgotten runs: their final state, and when they ended."""
        self._callbacks: dict[str, Sequence[CallbackRun]] = {}
        self.fans: dict[str, Fan] = {}

    def fan(self, id: str) -> Fan | None:
        return self.fans.get(id)

    def put_fan(self, fan: Fan) -> None:
        self.fans[fan.id] = fan

    def forget_fans(self, runs: Mapping[str, Run], now: float) -> None:
        """Forget the fans whose gather has ended. The gather of a new fan may not be there yet."""
        for fan in list(self.fans.values()):
            gather = runs.get(gather_id(fan.id))
            if fan.created_at <= now - ID_MEMORY if gather is None else gather.state.final:
                del self.fans[fan.id]

    def is_kept(self, run: str) -> bool:
        """Whether a run that ended is the child of a fan whose gather has not ended."""
        return "." in run and fan_of(run) in self.fans

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
