"""The store in memory: the whole contract, gone with its process. For tests, demos and simulation."""

from rota.stores.memory.store import MemoryBackend

__all__ = ["MemoryBackend"]
