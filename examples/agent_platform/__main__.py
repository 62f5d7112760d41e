"""`python -m examples.agent_platform` plays the platform for some seconds, on SQLite or on the store in ROTA_URL."""

import os
import sys
import tempfile
from collections import Counter

from examples.agent_platform.platform import Platform


def play(url: str) -> int:
    with Platform(url) as platform:
        print("an API of four processes without a scheduler, and two schedulers")
        schedulers = [platform.scheduler(), platform.scheduler()]
        api = platform.api(workers=4).ready()
        print("  PUT /schedules/report: ada writes a report every second")
        api.ask("PUT", "/schedules/report", {"agent": "ada", "when": "every 1s", "message": "Write the report"})
        platform.agents.more(3)
        print(f"  ada was asked {len(platform.agents.asked)} times, once for each tick")
        print("a scheduler is killed")
        schedulers.pop().kill()
        platform.agents.more(3)
        print("the API takes over: four schedulers inside, and the dedicated one stops")
        embedded = platform.api(workers=4, embedded=True).ready()
        schedulers.pop().stop()
        platform.agents.more(3)
        print("and back")
        scheduler = platform.scheduler().ready()
        embedded.stop()
        platform.agents.more(3)
        print(f"  GET {scheduler.url}/status: {len(scheduler.ask('GET', '/status')['loops'])} loops")
        print(f"  GET {api.url}/status: {api.ask('GET', '/status')}")
        print("the last ticks, and their runs:")
        for tick in api.ask("GET", "/schedules/report/executions")[-5:]:
            print(f"  {tick['at']}  {tick['reason']}  {tick['state']}")
        calls = Counter(asked.key for asked in platform.agents.asked)
        twice = sum(count > 1 for count in calls.values())
        print(f"{len(calls)} ticks were done; {twice} of them called the agent twice, because its worker was killed")
    return 0


def main(arguments: list[str]) -> int:
    if arguments:
        print(__doc__)
        return 2
    if "ROTA_URL" in os.environ:
        return play(os.environ["ROTA_URL"])
    with tempfile.TemporaryDirectory() as folder:
        return play(f"sqlite:///{folder}/rota.db")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
