"""The pull workers of examples/pull_worker, as processes: killed, frozen, and with lost replies."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from rota import PullWorker, ServiceError
from storekit.proxy import FaultProxy
from storekit.servers.places import free_port
from tests.processes import Process
from tests.web.serving import Served, serving

EXAMPLES = Path(__file__).parents[2] / "examples" / "pull_worker"
EXEC = "import os, sys; os.execvp(sys.argv[1], sys.argv[1:])"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("pull")
    with serving(folder, f"sqlite:///{folder}/rota.db", "--role", "web") as found:
        yield found


@pytest.fixture
def http(served: Served) -> Iterator[httpx.Client]:
    headers = {"Authorization": f"Bearer {served.token}"}
    with httpx.Client(base_url=f"{served.url}/api/v1", headers=headers, timeout=70) as client:
        yield client


def worker(served: Served, *command: str, url: str | None = None, **environment: str) -> Process:
    env = {"ROTA_SERVER": url or served.url, "ROTA_TOKEN": served.token, "PATH": os.environ["PATH"], **environment}
    return Process("-c", EXEC, *command, env=env)


def javascript(served: Served, url: str | None = None, **environment: str) -> Process:
    found = worker(served, "node", str(EXAMPLES / "worker.mjs"), url=url, **environment)
    found.wait_for("is ready")
    return found


def submit(http: httpx.Client, task: str, **args: object) -> str:
    made = http.post("/runs", json={"task": task, "args": args})
    assert made.status_code == 201, made.text
    return str(made.json()["run"])


def declare(http: httpx.Client, task: str) -> None:
    assert http.put(f"/tasks/{task}", json={}).status_code == 201


def ended(http: httpx.Client, id: str) -> dict[str, object]:
    run: dict[str, object] = http.get(f"/runs/{id}", params={"wait": 60}).json()
    return run


def test_a_worker_in_javascript_is_killed_and_another_is_frozen(served: Served, http: httpx.Client) -> None:
    with javascript(served, WORKER_LEASE="1") as killed:
        first = submit(http, "shout", text="hello", seconds=2)
        killed.wait_for(f"started {first} fence 1")
        killed.signal(signal.SIGKILL)
    with javascript(served, WORKER_LEASE="1") as frozen:
        run = ended(http, first)
        assert (run["state"], run["result"], run["losses"]) == ("succeeded", "HELLO", 1)
        second = submit(http, "shout", text="hello", seconds=0.5)
        frozen.wait_for(f"started {second} fence 1")
        frozen.signal(signal.SIGSTOP)
        with javascript(served, WORKER_LEASE="5"):
            run = ended(http, second)
            assert (run["state"], run["result"], run["fence"]) == ("succeeded", "HELLO", 2)
            frozen.signal(signal.SIGCONT)
            frozen.wait_for(f"{second}: stale")


def test_lost_replies_of_claim_and_settle_lose_nothing(served: Served, http: httpx.Client) -> None:
    port = int(served.url.rpartition(":")[2])
    place = ("127.0.0.1", free_port())
    with FaultProxy(("127.0.0.1", port), place) as proxy:
        url = f"http://127.0.0.1:{place[1]}"
        with javascript(served, url) as process:
            proxy.fail_next("cut after", match=b"/settle")
            id = submit(http, "shout", text="once")
            process.wait_for(f"succeeded {id}: already")
            proxy.fail_next("cut after", match=b"/claim")
            other = submit(http, "shout", text="twice")
            process.wait_for(f"succeeded {other}: applied")
            process.wait_for("again: /claim")
            run = ended(http, other)
            assert (run["state"], run["fence"]) == ("succeeded", 1), "one claim, whose answer came twice"


def test_a_worker_in_shell(served: Served, http: httpx.Client) -> None:
    with worker(served, "sh", str(EXAMPLES / "worker.sh"), "1") as process:
        process.wait_for("is ready")
        id = submit(http, "count", text="hello")
        process.wait_for(f"{id}: applied")
        assert ended(http, id)["result"] == 5


async def test_a_pull_worker_in_python_over_a_url(served: Served, http: httpx.Client) -> None:
    declare(http, "pulled")
    id = submit(http, "pulled", x=1)
    async with PullWorker(served.url, ["pulled"], token=served.token) as worker:
        (run,) = await worker.claim(wait=10)
        assert (run.id, run.args, await worker.renew([run])) == (id, {"x": 1}, ["ok"])
        assert await worker.succeed(run, 2) == "applied"
        assert await worker.succeed(run, 2) == "already"
    async with PullWorker(served.url, ["pulled"], token="rota_wrong") as stranger:
        with pytest.raises(ServiceError, match="valid token"):
            await stranger.claim()
