"""What rota costs, measured beside Huey's SQLite storage in one run: `python -m benchmarks`."""
