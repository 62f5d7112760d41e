"""`rota mcp`: an assistant asks why, within its rights."""

import json
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from rota import Rota
from rota.cli.mcp.protocol import LINE_LIMIT, Protocol
from rota.cli.mcp.tools import READS, WRITES
from rota.cli.mcp.within import within
from rota.web.table import ROUTES


class Assistant:
    def __init__(self, app: Rota, write: bool) -> None:
        self._protocol = Protocol([*READS, *(WRITES if write else ())], within(app, "mcp:ada", write))

    async def ask(self, method: str, **params: object) -> Any:
        line = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()
        answer = await self._protocol.answer(line)
        assert answer is not None
        return json.loads(answer)

    async def use(self, tool: str, **arguments: object) -> tuple[bool, Any]:
        result = (await self.ask("tools/call", name=tool, arguments=arguments))["result"]
        return result["isError"], json.loads(result["content"][0]["text"])


@pytest.fixture
async def reader(app: Rota) -> AsyncIterator[Assistant]:
    async with app.client():
        yield Assistant(app, write=False)


def test_every_tool_is_a_route() -> None:
    routes = {(route.method, route.template) for route in ROUTES}
    assert {(tool.method, f"/api/v1{tool.path}") for tool in (*READS, *WRITES)} <= routes
    assert not any(tool.writes for tool in READS)


async def test_an_assistant_asks_why(app: Rota, reader: Assistant) -> None:
    hello = await reader.ask("initialize", protocolVersion="2025-06-18")
    assert (hello["result"]["protocolVersion"], hello["result"]["serverInfo"]["name"]) == ("2025-06-18", "rota")
    names = [tool["name"] for tool in (await reader.ask("tools/list"))["result"]["tools"]]
    assert ("why" in names, "cancel_run" in names) == (True, False)
    run = await app.tasks["greet"].submit("ada", password="hunter2")
    failed, answer = await reader.use("why", subject=run.id)
    assert (failed, "worker" in answer["answer"]) == (False, True)
    failed, found = await reader.use("run", id=run.id)
    assert (failed, found["state"], found["args"]) == (False, "queued", None), "a viewer sees no arguments"
    failed, found = await reader.use("runs", task="greet", state="queued", limit=5)
    assert [each["id"] for each in found["items"]] == [run.id]
    for tool in ("tasks", "schedules", "workers", "decisions", "preview"):
        assert not (await reader.use(tool))[0], tool
    assert (await reader.use("doctor"))[0], "the doctor needs the right to operate"
    assert (await reader.use("run", id="../../metrics"))[0]


async def test_an_assistant_writes_only_when_told_and_is_recorded(app: Rota) -> None:
    async with app.client():
        writer = Assistant(app, write=True)
        _, made = await writer.use("submit", task="add", args={"a": 1})
        refused, paused = await writer.use("pause_task", name="add", note="looks broken")
        assert (refused, paused["changed"]) == (False, True)
        _, cancelled = await writer.use("cancel_run", id=made["run"])
        assert cancelled["state"] == "cancelled"
        _, decided = await writer.use("decisions", task="add")
        assert {each["by"] for each in decided["items"] if each["reason"] == "paused"} == {"mcp:ada"}
        reader = Assistant(app, write=False)
        refused = await reader.ask("tools/call", name="cancel_run", arguments={"id": made["run"]})
        assert "no tool" in refused["error"]["message"]


async def test_what_is_not_the_protocol_is_answered_by_an_error(reader: Assistant) -> None:
    protocol = reader._protocol  # pyright: ignore[reportPrivateUsage]
    for line, code in (
        (b"{", -32700),
        (b"[1]", -32600),
        (b" " * (LINE_LIMIT + 1), -32600),
        (b'{"id": 1, "method": "other"}', -32601),
        (b'{"id": 1, "method": "tools/call", "params": []}', -32602),
        (b'{"id": 1, "method": "tools/call", "params": {"name": "why", "arguments": {}}}', -32602),
        (
            b'{"id": 1, "method": "tools/call", "params": {"name": "why", "arguments": {"subject": "x", "y": 1}}}',
            -32602,
        ),
    ):
        answer = await protocol.answer(line)
        assert answer is not None
        assert json.loads(answer)["error"]["code"] == code, line[:80]
    assert await protocol.answer(b'{"method": "notifications/initialized"}') is None


def test_the_command_speaks_line_by_line(tmp_path: Path) -> None:
    (tmp_path / "jobs.py").write_text("from rota import Rota\napp = Rota('memory://')\n")
    lines = [
        {"jsonrpc": "2.0", "id": 1, "method": "ping"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "tasks", "arguments": {}}},
    ]
    done = subprocess.run(
        [sys.executable, "-m", "rota", "-A", "jobs:app", "mcp"],
        input="".join(f"{json.dumps(line)}\n" for line in lines),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    first, second = map(json.loads, done.stdout.splitlines())
    assert (first, second["result"]["isError"]) == ({"jsonrpc": "2.0", "id": 1, "result": {}}, False)
