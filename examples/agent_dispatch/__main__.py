"""`python -m examples.agent_dispatch` plays the agent for some seconds; with SCHEDULER_TYPE=redis and REDIS_URL in two
processes that share a queue, and one of them is killed."""

import os
import sys

from examples.agent_dispatch.model import TheModel
from examples.services import Service, Services


def ended(agent: Service, id: str) -> str:
    """Wait for the end of a task, and return its state and its steps."""
    task = agent.ask("GET", f"/tasks/{id}?wait=30")
    return f"{task['state']}, {round((task['progress'] or 0) * 100)} % done, {task['attempts']} attempts"


def sent(agent: Service, message: str, **more: object) -> str:
    id: str = agent.ask("POST", "/message/send", {"message": message, **more})["task_id"]
    print(f"POST /message/send {message}: {id}")
    return id


def play() -> int:
    with TheModel() as model, Services(MODEL_URL=model.url, ROTA_LEASE="3") as services:
        agent = services.serve("examples.agent_dispatch.api:api").ready()
        model.hold("a poem", 2)
        poem, letter = sent(agent, "a poem"), sent(agent, "a letter")
        print(f"  the letter is done while the model thinks about the poem: {ended(agent, letter)}")
        model.reached("a poem", 2)
        print(f"  pause the poem at step 2: {agent.ask('POST', f'/tasks/{poem}/pause')}")
        stopped(agent, poem)
        model.release()
        print(
            f"  resume it: {agent.ask('POST', f'/tasks/{poem}/resume')}; it goes on after step 1: {ended(agent, poem)}"
        )
        model.hold("a novel", 1)
        novel = sent(agent, "a novel")
        model.reached("a novel", 1)
        print(f"  cancel the novel in the middle: {agent.ask('POST', f'/tasks/{novel}/cancel')}, {ended(agent, novel)}")
        if os.environ.get("SCHEDULER_TYPE") == "redis":
            crash(model, services, agent)
        print(f"GET /health: {agent.ask('GET', '/health')}, GET /queue: {agent.ask('GET', '/queue')}")
    return 0


def stopped(agent: Service, id: str) -> None:
    """Wait until nobody works on a task."""
    while agent.ask("GET", f"/tasks/{id}")["state"] == "working":
        pass


def crash(model: TheModel, services: Services, agent: Service) -> None:
    model.hold("a report", 2)
    report = sent(agent, "a report")
    model.reached("a report", 2)
    while agent.ask("GET", f"/tasks/{report}")["progress"] is None:
        pass
    print("  a second process comes, and the first is killed in the middle of step 2")
    other = services.serve("examples.agent_dispatch.api:api").ready()
    agent.kill()
    model.release()
    print(f"  the second goes on after step 1: {ended(other, report)}")
    agent.url, agent.process = other.url, other.process


def main(arguments: list[str]) -> int:
    if arguments:
        print(__doc__)
        return 2
    return play()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
