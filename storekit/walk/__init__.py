"""The orders of events in a small world: two workers, a few runs, a schedule, a clock, and what can go wrong.

The walk goes through the states of the real ledger over the memory store, breadth first, and holds every step to the
promises in `promising`. Paths of the walk are told to other stores by `replaying`, which compares every answer.
"""

from storekit.walk.replaying import replay
from storekit.walk.walking import Broken, Path, Walk, walk
from storekit.walk.worlds import WORLDS, World

__all__ = ["WORLDS", "Broken", "Path", "Walk", "World", "replay", "walk"]
