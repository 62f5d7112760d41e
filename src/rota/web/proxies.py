"""Trusted proxies: from whom the service believes which address, scheme and host a request had."""

from collections.abc import Sequence
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Receive, Scope, Send

from rota.errors import InvalidOptions

Networks = Sequence[IPv4Network | IPv6Network]
FORWARDED = ("x-forwarded-for", "x-forwarded-proto", "x-forwarded-host")


def networks(texts: Sequence[str]) -> Networks:
    try:
        return [ip_network(text) for text in texts]
    except ValueError as error:
        raise InvalidOptions(f"--trusted-proxy: {error}") from None


def is_in(address: str, trusted: Networks) -> bool:
    try:
        found = ip_address(address)
    except ValueError:
        return False
    mapped = getattr(found, "ipv4_mapped", None) or found
    return any(mapped in network for network in trusted)


class TrustedProxies:
    """Gives a request of a trusted proxy the address, the scheme and the host that the proxy saw. The headers of others
    are removed, so that nobody else is believed."""

    def __init__(self, inner: ASGIApp, trusted: Networks, user_header: str | None = None) -> None:
        self._inner = inner
        self._trusted = trusted
        self._user_header = user_header

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            scope = dict(scope)
            headers = MutableHeaders(raw=list(scope["headers"]))
            peer = scope["client"][0] if scope.get("client") else ""
            if is_in(peer, self._trusted):
                self._believe(scope, headers, peer)
            elif self._user_header is not None:
                del headers[self._user_header]
            for name in FORWARDED:
                del headers[name]
            scope["headers"] = headers.raw
        await self._inner(scope, receive, send)

    def _believe(self, scope: Scope, headers: MutableHeaders, peer: str) -> None:
        address = client_of(headers, peer, self._trusted)
        scope["client"] = (address, 0)
        if (scheme := headers.get("x-forwarded-proto", "").lower()) in ("http", "https"):
            scope["scheme"] = scheme
        if host := headers.get("x-forwarded-host"):
            headers["host"] = host


def client_of(headers: Headers, peer: str, trusted: Networks) -> str:
    """Return the last address of X-Forwarded-For that is no trusted proxy: what comes before it anybody can write."""
    hops = [hop.strip() for line in headers.getlist("x-forwarded-for") for hop in line.split(",")]
    for hop in reversed(hops):
        if not is_in(hop, trusted):
            return hop[:64] or peer
    return peer
