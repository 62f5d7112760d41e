"""Conditions: a write that names the version of a thing for which it is meant (RFC 9110, If-Match)."""

from starlette.requests import Request

from rota.web.problems import Problem

IF_MATCH = "If-Match"
IF_NONE_MATCH = "If-None-Match"


def tag(version: object) -> str:
    """Return the ETag of a version."""
    return f'"{version}"'


def check_match(request: Request, current: str | None) -> bool:
    """Return whether the caller named a version. Raise a 412 if it is not `current`, which is None for a thing that is
    not there."""
    given = request.headers.get(IF_MATCH)
    if given is None:
        return False
    tags = [each.strip() for each in given.split(",")]
    if current is None or (current not in tags and "*" not in tags):
        raise changed(current)
    return True


def is_known(request: Request, current: str | None) -> bool:
    """Return whether the caller of a GET has this version already: `If-None-Match`. Tags compare weakly, as RFC
    9110 has it for reads. `*`, which names no version, is for writes: whoever reads with it gets the thing."""
    given = request.headers.get(IF_NONE_MATCH)
    if given is None or current is None or request.method not in ("GET", "HEAD"):
        return False
    tags = [each.strip().removeprefix("W/") for each in given.split(",")]
    return current in tags


def wants_new(request: Request) -> bool:
    """Return whether the write is only for a thing that is not there: `If-None-Match: *`."""
    given = request.headers.get(IF_NONE_MATCH)
    if given is None:
        return False
    if given.strip() != "*":
        raise Problem(412, f"{IF_NONE_MATCH}: send * for a write that must not replace anything")
    return True


def changed(current: str | None) -> Problem:
    """Return the problem of a write that is for another version."""
    if current is None:
        return Problem(412, f"there is nothing that {IF_MATCH} could match")
    return Problem(412, "it has changed since you read it: read it again", headers={"ETag": current})
