"""The store on a PostgreSQL server, shared by any number of processes on any number of machines."""

from rota.stores.postgres.backend import PostgresBackend

__all__ = ["PostgresBackend"]
