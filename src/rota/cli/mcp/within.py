"""The routes of the service in this process, without a socket: the same rights, masks and audit."""

from collections.abc import Mapping
from urllib.parse import unquote, urlencode

import msgspec
from starlette.types import Message

from rota.app.app import Rota
from rota.cli.mcp.protocol import Send
from rota.web.rights import Principal, Right, rights_of
from rota.web.service import asgi


def within(app: Rota, name: str, write: bool) -> Send:
    rights = rights_of("operator" if write else "viewer") - {Right.PAYLOAD}
    service = asgi(app, lambda scope: Principal(name, rights))

    async def request(method: str, path: str, given: Mapping[str, object]) -> tuple[int, str]:
        query = urlencode(given, doseq=True) if method == "GET" else ""
        body = b"" if method == "GET" else msgspec.json.encode(given)
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": unquote(path),
            "raw_path": path.encode(),
            "root_path": "",
            "query_string": query.encode(),
            "headers": [(b"host", b"localhost"), (b"content-type", b"application/json")],
            "server": ("localhost", 80),
            "client": None,
        }
        status, parts = 500, list[bytes]()

        async def receive() -> Message:
            return {"type": "http.request", "body": body, "more_body": False}

        async def send(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = int(message["status"])
            else:
                parts.append(message.get("body", b""))

        await service(scope, receive, send)
        return status, b"".join(parts).decode(errors="replace")

    return request
