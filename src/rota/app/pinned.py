"""Requests of the built-in task `http`: only to hosts that the settings allow, and to the address that was checked.

Who may submit a run chooses its URL. So the name of the host has to be on the list, and each address that DNS answers
has to be public or on the list as well. The connection goes to that address, whatever DNS answers next. A redirect is
a new request, with the same checks.
"""

import http.client
import ipaddress
import socket
import ssl
import time
from collections.abc import Callable, Mapping, Sequence
from urllib.parse import urljoin, urlsplit

from msgspec import Struct

from rota.errors import Discard, InvalidOptions

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Resolve = Callable[[str, int], Sequence[str]]
"""From a host and a port to its addresses as text."""

PORTS = {"http": 80, "https": 443}
ANSWER_LIMIT = 1024 * 1024
"""Bytes of a body."""
HEADERS_LIMIT = 50
REDIRECTS = 3
"""The most redirects that a caller may allow."""
FOLLOWED = (301, 302, 303, 307, 308)
OURS = ("host", "content-length", "transfer-encoding", "connection", "upgrade", "te", "trailer", "expect")
"""Headers that no caller sets."""
NAT64 = ipaddress.ip_network("64:ff9b::/96")


class Received(Struct, frozen=True):
    status: int
    headers: dict[str, str]
    body: bytes


class AllowList:
    """The hosts that may be called: `https://api.example.org`, `*.example.org`, `agent:8080`, and networks of addresses
    that are not public: `10.0.0.0/8`. An entry without a scheme is for http and https; one without a port for the
    scheme's own, 80 or 443."""

    def __init__(self, entries: Sequence[str]) -> None:
        self._hosts: set[tuple[str | None, str, int | None]] = set()
        self._networks: list[ipaddress.IPv4Network | ipaddress.IPv6Network] = []
        for entry in entries:
            try:
                self._networks.append(ipaddress.ip_network(entry))
            except ValueError:
                self._hosts.add(_host_entry(entry))

    def check_host(self, host: str, port: int, scheme: str) -> None:
        parents = [f"*.{host.split('.', at)[at]}" for at in range(1, host.count(".") + 1)]
        ports = (port, None) if port == PORTS[scheme] else (port,)
        names = [(kind, name) for kind in (scheme, None) for name in (host, *parents)]
        allowed = any((*name, one) in self._hosts for name in names for one in ports)
        if not allowed and not self._is_listed(_literal(host)):
            raise Discard(f"{host}:{port} is not allowed: add it to http_hosts in the settings of the worker")

    def check_address(self, text: str, host: str) -> None:
        """Refuse an address inside the network of the worker, also if it is written as IPv6, unless it is listed."""
        address = plain(ipaddress.ip_address(text.partition("%")[0]))
        if not self._is_listed(address) and (not address.is_global or address.is_multicast):
            raise Discard(f"{host} has the address {address}, which is not public: add its network to http_hosts")

    def _is_listed(self, address: Address | None) -> bool:
        return address is not None and any(address in network for network in self._networks)


def _host_entry(entry: str) -> tuple[str | None, str, int | None]:
    scheme, given, rest = entry.partition("://")
    host, colon, port = (rest if given else entry).partition(":")
    known = not given or scheme.lower() in PORTS
    if (
        not known
        or not host
        or "/" in host
        or (colon and not port.isdecimal())
        or not host.isprintable()
        or " " in host
    ):
        raise InvalidOptions(
            f"http_hosts: {entry!r} is no host, no https://host, no host:port and no network such as 10.0.0.0/8"
        )
    return scheme.lower() if given else None, host.lower(), int(port) if colon else None


def _literal(host: str) -> Address | None:
    try:
        return plain(ipaddress.ip_address(host))
    except ValueError:
        return None


def plain(address: Address) -> Address:
    """Return the IPv4 address that an IPv6 address stands for, if it stands for one."""
    if isinstance(address, ipaddress.IPv4Address):
        return address
    inner = address.ipv4_mapped or address.sixtofour or (address.teredo[1] if address.teredo else None)
    if inner is None and address in NAT64:
        inner = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    if inner is None and int(address) >> 32 == 0 and int(address) > 1:  # ::127.0.0.1
        inner = ipaddress.IPv4Address(int(address))
    return inner or address


def resolve(host: str, port: int) -> Sequence[str]:
    return [str(found[4][0]) for found in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)]


class Caller:
    """Sends requests within an allow list. `resolver` stands for DNS."""

    def __init__(self, allowed: AllowList, resolver: Resolve = resolve) -> None:
        self._allowed = allowed
        self._resolve = resolver

    def call(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str],
        body: bytes | None,
        seconds: float,
        redirects: int = 0,
    ) -> Received:
        """Return the answer, after at most so many `redirects`. Raise Discard for what is not allowed, OSError if there
        is no answer in time."""
        until = time.monotonic() + seconds
        sent: Mapping[str, str] = headers
        for _ in range(redirects + 1):
            received = self._once(method, url, sent, body, until)
            where = received.headers.get("location")
            if received.status not in FOLLOWED or where is None:
                return received
            if method not in ("GET", "HEAD") or not redirects:
                raise Discard(f"{method} {url} is redirected to {where}: give the final URL, or redirects= for a GET")
            before, url = url, urljoin(url, where)
            if _parts(url)[:3] != _parts(before)[:3]:  # another host, port or scheme gets nothing that is for the first
                sent, body = _harmless(headers), None
        raise Discard(f"more than {redirects} redirects, the last to {url}")

    def _once(self, method: str, url: str, headers: Mapping[str, str], body: bytes | None, until: float) -> Received:
        scheme, host, port, target = _parts(url)
        self._allowed.check_host(host, port, scheme)
        addresses = list(dict.fromkeys(self._resolve(host, port)))
        for address in addresses:
            self._allowed.check_address(address, host)
        if not addresses:
            raise OSError(f"{host} has no address")
        connection = _Pinned(host, port, addresses, scheme == "https", until)
        try:
            connection.request(method, target, body, dict(headers))
            answer = connection.getresponse()
            found = {name.lower(): value for name, value in answer.getheaders()}
            return Received(answer.status, found, _read(answer, connection, until))
        except http.client.HTTPException as error:
            raise OSError(f"{host} answers no HTTP: {error!r:.200}") from None
        finally:
            connection.close()


def _harmless(headers: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in headers.items() if name.lower() in ("accept", "user-agent")}


def _parts(url: str) -> tuple[str, str, int, str]:
    try:
        parts = urlsplit(url)
        port = parts.port or PORTS.get(parts.scheme, 0)
    except ValueError as error:
        raise Discard(f"{url!r:.200}: {error}") from None
    host = (parts.hostname or "").rstrip(".").lower()
    if parts.scheme not in PORTS or not host or parts.username or parts.password:
        raise Discard(f"{url!r:.200}: write http:// or https://, a host, and no password")
    if not url.isascii() or not url.isprintable() or " " in url:
        raise Discard(f"{url!r:.200}: characters that no URL has; quote them")
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return parts.scheme, host, port, target


def _read(answer: http.client.HTTPResponse, connection: "_Pinned", until: float) -> bytes:
    """Read the body in pieces, so that a body that never ends takes neither for ever nor all memory."""
    parts: list[bytes] = []
    size = 0
    while size <= ANSWER_LIMIT:
        connection.hurry(until)
        part = answer.read1(65536)
        if not part:
            return b"".join(parts)
        parts.append(part)
        size += len(part)
    raise Discard(f"the answer has more than {ANSWER_LIMIT:,} bytes")


class _Pinned(http.client.HTTPConnection):
    """A connection to the first checked address that answers. The name of the host is for the certificate and the Host
    header."""

    def __init__(self, host: str, port: int, addresses: Sequence[str], secure: bool, until: float) -> None:
        super().__init__(host, port)
        self.default_port = PORTS["https" if secure else "http"]
        self._addresses = addresses
        self._secure = secure
        self._until = until

    def connect(self) -> None:
        for address in self._addresses:
            try:
                self.sock = socket.create_connection((address, self.port), timeout=_left(self._until))
                break
            except OSError:
                if address == self._addresses[-1]:
                    raise
        if self._secure:
            context = ssl.create_default_context()
            self.sock = context.wrap_socket(self.sock, server_hostname=self.host)
        self.hurry(self._until)

    def hurry(self, until: float) -> None:
        """Let the next read wait no longer than the whole call may take."""
        if self.sock is not None:
            self.sock.settimeout(_left(until))


def _left(until: float) -> float:
    left = until - time.monotonic()
    if left <= 0:
        raise TimeoutError("the call took longer than its timeout")
    return left
