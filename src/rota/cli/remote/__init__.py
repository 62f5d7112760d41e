"""The command `rota` against a service (ROTA_SERVER) instead of a store."""
