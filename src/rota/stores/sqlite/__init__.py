"""The SQLite store: one file, shared by any number of processes on one machine."""

from rota.stores.sqlite.backend import SqliteBackend

__all__ = ["SqliteBackend"]
