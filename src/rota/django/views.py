"""Views: the control room for members of staff, and three small ones for probes and Prometheus."""

import logging
from urllib.parse import quote

import msgspec
from django.http import HttpRequest, HttpResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_safe

from rota.django.bridge import Answer, principal_of, send

log = logging.getLogger("rota.django")

EVENTS = "api/v1/events"
SAFE = ("GET", "HEAD", "OPTIONS")
PROBLEM = "application/problem+json"
LONGEST = 1_048_576
"""Bytes of a body that the service reads at most."""


@require_safe
@never_cache
def health(request: HttpRequest) -> HttpResponse:
    """200 while the loops of this process live: for a liveness probe. It says nothing else, so anybody may ask."""
    return _response(send(None, "GET", "/health"))


@require_safe
@never_cache
def ready(request: HttpRequest) -> HttpResponse:
    """200 if the store answers and the engine of this process, if it has one, has claimed lately."""
    return _response(send(None, "GET", "/ready"))


@require_safe
@never_cache
def metrics(request: HttpRequest) -> HttpResponse:
    """The metrics for Prometheus. Whoever reaches this path reads the names of tasks: guard the path, not the view."""
    from rota.web.rights import Principal, Right

    accept = [(b"accept", request.headers.get("Accept", "text/plain").encode("latin-1", "replace"))]
    return _response(send(Principal("metrics", frozenset({Right.METRICS})), "GET", "/metrics", headers=accept))


@csrf_exempt  # the pages send no token of Django: each write has to come from this very site, see `_is_ours`
@never_cache
def control_room(request: HttpRequest, path: str = "") -> HttpResponse:
    """The service of rota for members of staff, with the rights that their permissions give."""
    user = getattr(request, "user", None)
    principal = None if user is None else principal_of(user)
    if principal is None:
        return _sign_in(request, path)
    if request.method not in SAFE and not _is_ours(request):
        return _problem(403, "a page of another site may not do this")
    if path == EVENTS:
        return _problem(501, "there are no live events here: the page asks again every few seconds")
    root = request.path[: len(request.path) - len(path)].rstrip("/") if path else request.path.rstrip("/")
    names = ("accept", "content-type", "if-match", "if-none-match", "idempotency-key", "prefer", "x-request-id")
    headers = [
        (name.encode(), value.encode("latin-1", "replace")) for name in names if (value := request.headers.get(name))
    ]
    length = request.headers.get("Content-Length", "")
    if length.isdecimal() and int(length) > LONGEST:
        return _problem(413, f"a body has at most {LONGEST} bytes")
    answer = send(
        principal,
        request.method or "GET",
        f"/{quote(path, safe='/:@-._~%')}",
        request.META.get("QUERY_STRING", "").encode("latin-1", "replace"),
        request.body,
        headers,
        quote(root),
        request.is_secure(),
        str(request.META.get("REMOTE_ADDR", "")),
    )
    return _response(answer)


def _is_ours(request: HttpRequest) -> bool:
    """Return whether a page of this site sent a write: the browser says so, and no page can write these headers."""
    site = request.headers.get("Sec-Fetch-Site")
    if site is not None:
        return site == "same-origin"
    return request.headers.get("Origin") == f"{request.scheme}://{request.get_host()}"


def _sign_in(request: HttpRequest, path: str) -> HttpResponse:
    """Send a person to the login of Django's admin, and tell a program what is missing."""
    user = getattr(request, "user", None)
    if path.startswith("api/") or request.method not in SAFE or (user is not None and user.is_authenticated):
        return _problem(403, "only members of staff with the permission rota.view_run may see this")
    from django.contrib.auth.views import redirect_to_login
    from django.shortcuts import resolve_url
    from django.urls import NoReverseMatch

    try:
        login = resolve_url("admin:login")
    except NoReverseMatch:
        login = None
    return redirect_to_login(request.get_full_path(), login)


def _problem(status: int, detail: str) -> HttpResponse:
    body = msgspec.json.encode({"status": status, "title": detail, "detail": detail})
    return HttpResponse(body, status=status, content_type=PROBLEM)


def _response(answer: Answer) -> HttpResponse:
    response = HttpResponse(answer.body, status=answer.status)
    del response.headers["Content-Type"]
    for name, value in answer.headers:
        if name.lower() != "content-length":
            response.headers[name] = value
    return response
