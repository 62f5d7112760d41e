"""The app that every process of the platform imports: the API, the schedulers and the workers.

A schedule of an agent is a row of the store that calls the agent's HTTP API by the built-in task `http`. So a schedule
needs no code, and any scheduler can fire it.
"""

import os
from typing import Any

from rota import Rota
from rota.task import Bound

AGENTS = os.environ.get("AGENTS_URL", "http://127.0.0.1:8200")
"""Where the agents are reached."""

app = Rota(name="agent_platform", http_hosts=os.environ.get("AGENT_HOSTS", "127.0.0.0/8").split(","))


def call_of(agent: str, message: str) -> Bound[Any]:
    """Return the call of an agent. The id of the run is sent as Idempotency-Key: the agent can recognise a repetition,
    after a crash of the worker in the middle of the call."""
    return app.tasks["http"].bind(f"{AGENTS}/agents/{agent}/task", method="POST", json={"message": message})
