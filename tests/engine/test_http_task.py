"""The built-in task http: what it calls, and what it refuses to call."""

import hashlib
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar

import pytest

from rota import Retry, Rota
from rota.app.pinned import AllowList, Caller
from rota.errors import Discard, InvalidOptions
from rota.testing import drain
from tests.requirement import requirement


class Service(BaseHTTPRequestHandler):
    seen: ClassVar[list[tuple[str, str, dict[str, str], bytes]]] = []

    def answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.seen.append((self.command, self.path, dict(self.headers), body))
        status, _, where = self.path.removeprefix("/").removesuffix("?huge").partition("/to/")
        self.send_response(int(status or 200))
        if where:
            self.send_header("Location", where)
        size = 2_000_000 if "huge" in self.path else 2
        self.send_header("Content-Type", "application/json")
        self.send_header("Set-Cookie", "session=secret")
        self.send_header("Content-Length", str(size))
        self.end_headers()
        try:
            self.wfile.write(b"{}" if size == 2 else b" " * size)
        except OSError:
            return

    do_GET = do_POST = answer  # noqa: N815

    def log_message(self, format: str, *args: Any) -> None:
        return


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Service)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server.server_address[1]
    server.shutdown()
    server.server_close()


def caller(*hosts: str, **addresses: list[str]) -> Caller:
    """A caller with a DNS of its own: names without dots."""
    return Caller(AllowList(hosts), lambda host, port: addresses.get(host, ["93.184.216.34"]))


@requirement("1.9")
async def test_a_schedule_calls_a_service(port: int) -> None:
    app = Rota("memory://", http_hosts=[f"localhost:{port}", "127.0.0.0/8", "::1/128"])
    url = f"http://localhost:{port}/200"
    run = await app.tasks["http"].submit(url, method="POST", json={"a": 1}, headers={"X-Agent": "7"})
    whole = await app.tasks["http"].submit(url, keep_body=True)
    bad = await app.tasks["http"].submit(f"http://localhost:{port}/404")
    later = await app.tasks["http"].using(retry=Retry(0)).submit(f"http://localhost:{port}/503")
    await drain(app)
    result = await run.result()
    assert (result["status"], result["bytes"], "body" in result) == (200, 2, False)
    assert result["sha256"] == hashlib.sha256(b"{}").hexdigest()
    assert result["headers"].keys() == {"content-type", "content-length", "date"}, "no cookie, and no name of a server"
    assert (await whole.result())["body"] == {}
    method, path, headers, body = next(each for each in Service.seen if each[2].get("Idempotency-Key") == run.id)
    assert (method, path, headers["X-Agent"], body) == ("POST", "/200", "7", b'{"a":1}')
    assert (await app.client().run(bad.id)).reason == "discarded", "a retry would not help"
    assert (await app.client().run(later.id)).reason == "failed"


@pytest.mark.parametrize(
    "url",
    [
        "http://other.example/",
        "http://agent.example.evil.example/",
        "http://agent.example:22/",
        "http://127.0.0.1/",
        "http://2130706433/",
        "http://0x7f.1/",
        "http://[::ffff:127.0.0.1]/",
        "http://user:secret@agent.example/",
        "http://agent.example@evil.example/",
        "file:///etc/passwd",
        "gopher://agent.example/",
        "http://agent.example/a b",
        "http://agent.example/\r\nX: y",
        "http://agent.example:99999/",
        "http:///",
    ],
)
def test_a_url_that_is_not_allowed_is_refused(url: str) -> None:
    with pytest.raises(Discard):
        caller("agent.example").call("GET", url, {}, None, 5)


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "169.254.169.254",
        "10.0.0.7",
        "0.0.0.0",
        "::1",
        "::ffff:127.0.0.1",
        "::ffff:169.254.169.254",
        "::127.0.0.1",
        "64:ff9b::7f00:1",
        "2002:7f00:1::",
        "fe80::1%eth0",
        "fd00::1",
        "224.0.0.1",
    ],
)
def test_an_allowed_name_with_an_address_inside_is_refused(address: str) -> None:
    """DNS is the attacker's: the name is on the list, and its address is the worker's own network."""
    for answer in ([address], ["93.184.216.34", address]):
        with pytest.raises(Discard, match="not public"):
            caller("agent", agent=answer).call("GET", "http://agent/", {}, None, 5)


def test_the_connection_goes_to_the_address_that_was_checked(port: int) -> None:
    """DNS answers once; the second answer, of a rebinding name, is never asked for."""
    answers = [["127.0.0.1"], ["169.254.169.254"]]
    pinned = Caller(AllowList([f"agent:{port}", "127.0.0.1/32"]), lambda host, port: answers.pop(0))
    assert pinned.call("GET", f"http://agent:{port}/200", {}, None, 5).status == 200
    assert len(answers) == 1
    assert Service.seen[-1][2]["Host"] == f"agent:{port}"


def test_a_redirect_is_judged_as_a_call(port: int) -> None:
    inside = caller(f"agent:{port}", f"other:{port}", "127.0.0.1/32", agent=["127.0.0.1"], other=["127.0.0.1"])
    base = f"http://agent:{port}"
    for where in ("http://169.254.169.254/", "http://evil.example/", "http://[::ffff:10.0.0.1]/", "file:///etc/passwd"):
        with pytest.raises(Discard):
            inside.call("GET", f"{base}/302/to/{where}", {}, None, 5, 3)
    with pytest.raises(Discard, match="more than 2 redirects"):
        inside.call("GET", f"{base}/302/to/{base}/302/to/{base}/302/to//200", {}, None, 5, 2)
    secret = {"Authorization": "Bearer x"}
    with pytest.raises(Discard, match="is redirected to /200"):
        inside.call("GET", f"{base}/302/to//200", secret, None, 5)
    assert inside.call("GET", f"{base}/302/to//200", secret, None, 5, 1).status == 200
    assert Service.seen[-1][2]["Authorization"] == "Bearer x"
    assert inside.call("GET", f"{base}/302/to/http://other:{port}/200", secret, b'{"key": 1}', 5, 1).status == 200
    assert "Authorization" not in Service.seen[-1][2], "another host gets no credential"
    assert Service.seen[-1][3] == b"", "and no body, which may have one in it"
    with pytest.raises(Discard, match="give the final URL"):
        inside.call("POST", f"{base}/307/to//200", {}, b"{}", 5, 3)


def test_a_body_and_its_time_are_bounded(port: int) -> None:
    inside = caller(f"agent:{port}", "127.0.0.1/32", agent=["127.0.0.1"])
    with pytest.raises(Discard, match="bytes"):
        inside.call("GET", f"http://agent:{port}/200?huge", {}, None, 5)
    with pytest.raises(OSError, match="timeout"):
        inside.call("GET", f"http://agent:{port}/200", {}, None, 0.0)


def test_a_wrong_list_is_refused_at_the_start() -> None:
    for wrong in ("ftp://agent", "http://", "http://agent/x", "agent:x", "10.0.0.1/33", ""):
        with pytest.raises(InvalidOptions, match="http_hosts"):
            AllowList([wrong])


def test_an_entry_may_name_its_scheme() -> None:
    listed = AllowList(["https://agent.example", "http://*.local.example:8080", "both.example"])
    for host, port, scheme in (
        ("agent.example", 443, "https"),
        ("a.local.example", 8080, "http"),
        ("both.example", 80, "http"),
        ("both.example", 443, "https"),
    ):
        listed.check_host(host, port, scheme)
    for host, port, scheme in (
        ("agent.example", 80, "http"),
        ("agent.example", 8443, "https"),
        ("a.local.example", 8080, "https"),
        ("a.local.example", 80, "http"),
    ):
        with pytest.raises(Discard, match="not allowed"):
            listed.check_host(host, port, scheme)


async def test_more_redirects_than_three_cannot_be_allowed(port: int) -> None:
    app = Rota("memory://", http_hosts=[f"http://localhost:{port}", "127.0.0.0/8", "::1/128"])
    many = await app.tasks["http"].submit(f"http://localhost:{port}/200", redirects=4)
    one = await app.tasks["http"].submit(f"http://localhost:{port}/302/to//200", redirects=1)
    await drain(app)
    assert (await app.client().run(many.id)).reason == "discarded"
    assert (await one.result())["status"] == 200


def test_without_a_list_there_is_no_task() -> None:
    assert "http" not in Rota("memory://").tasks
