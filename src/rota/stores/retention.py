"""How long stores remember what is no run."""

WORKER_MEMORY = 3600.0
MARK_MEMORY = 8 * 86_400.0
