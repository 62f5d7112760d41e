"""The memory store. Its data is lost when the process ends: it is for tests, demos and simulation."""

from rota.stores.memory.store import MemoryBackend

__all__ = ["MemoryBackend"]
