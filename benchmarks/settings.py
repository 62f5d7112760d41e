"""How much is measured, and how often."""

from msgspec import Struct


class Settings(Struct, frozen=True, kw_only=True):
    rounds: int = 3
    runs: int = 20_000
    cap: float = 10.0
    """Seconds after which a slow submit or drain is measured by what it has done."""
    paced: int = 500
    gap: float = 0.02
    lone: int = 500
    shallow: int = 1_000
    deep: int = 1_000_000
    crowd: int = 100_000
    trigger_rounds: int = 9
    due: int = 10_000
    schedules: int = 100_000
    idle: float = 60.0
    steps: int = 1_000

    def quick(self) -> "Settings":
        """A fast look: noisy, and not written down."""
        few = {"paced": 100, "lone": 100, "deep": 20_000, "crowd": 5_000, "trigger_rounds": 3, "due": 2_000}
        return Settings(rounds=1, runs=min(self.runs, 4_000), cap=3.0, schedules=5_000, idle=5.0, **few)
