"""The processes of the platform: an API of several workers, and schedulers beside it."""

from typing import Self

from examples.agent_platform.agents import Agents
from examples.services import Service, Services


class Platform:
    """Agents, and a store that the processes share. Everything ends with the block."""

    def __init__(self, url: str) -> None:
        self.agents = Agents()
        self._services = Services(ROTA_URL=url, ROTA_LEASE="3", AGENTS_URL=self.agents.url)

    def __enter__(self) -> Self:
        self.agents.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._services.__exit__(*error)
        self.agents.__exit__(*error)

    def scheduler(self) -> Service:
        """Start `rota serve`: a scheduler and worker with the API of rota."""
        command = ["-m", "rota", "-A", "examples.agent_platform.app:app", "serve", "--no-token", "--port"]
        return self._services.start(command)

    def api(self, workers: int = 1, embedded: bool = False) -> Service:
        """Start the API of the platform. `embedded`: with a scheduler in each of its processes."""
        enabled = "true" if embedded else "false"
        return self._services.serve("examples.agent_platform.api:api", workers, ROTA_ENABLED=enabled)
