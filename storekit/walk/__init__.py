"""All orders of events in a small world: two workers, a few runs, a schedule, a clock, lost replies and crashes.

The walk visits the states of the real ledger over the memory store, breadth first, and checks every step against the
promises in `promising`. `replaying` plays paths of the walk on other stores and compares every answer.
"""

from storekit.walk.replaying import replay
from storekit.walk.walking import Broken, Path, Walk, walk
from storekit.walk.worlds import WORLDS, World

__all__ = ["WORLDS", "Broken", "Path", "Walk", "World", "replay", "walk"]
