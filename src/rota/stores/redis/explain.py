"""Errors of the server and of the driver in plain words: what happened, to which store, and what to do."""

from redis.exceptions import AuthenticationError, RedisError, ResponseError

from rota.errors import StoreCorrupt, StoreError, StoreUnavailable

ELSEWHERE = ("READONLY", "MOVED", "ASK", "CLUSTERDOWN", "MASTERDOWN", "TRYAGAIN", "LOADING", "BUSY")
"""Codes of a server that cannot serve the request, or not yet."""


def elsewhere(error: BaseException) -> bool:
    """Whether another server, or the same server a moment later, may serve the request."""
    message = f" {_with_code(error)} "
    return any(f" {code} " in message for code in ELSEWHERE)


def _with_code(error: BaseException) -> str:
    """The message of the server. The driver moves the code of some messages into `status_code`."""
    return f"{getattr(error, 'status_code', '')} {error}"


def explain(error: BaseException, shown: str) -> StoreError:
    message = f"{type(error).__name__} {_with_code(error)}"
    for code, (sentence, passing) in SENTENCES.items():
        if code in message:
            return StoreUnavailable(f"{shown} {sentence} ({error})", passing)
    if isinstance(error, AuthenticationError):
        return StoreUnavailable(f"{shown} refused the login; check user and password ({error})", passing=False)
    if any(word in message for word in ("WRONGTYPE", "user_script", "user_function")):
        what = "holds what this version of rota cannot read; does something else use the namespace?"
        return StoreCorrupt(f"{shown} {what} ({error})")
    if isinstance(error, ResponseError):
        return StoreUnavailable(f"{shown} refused: {error}", passing=False)
    if "imeout" in message and isinstance(error, RedisError | TimeoutError):
        return StoreUnavailable(f"{shown} did not answer in time ({error})")
    return StoreUnavailable(f"{shown} cannot be reached; is the server running? (ROTA_URL) ({error})")


SENTENCES = {
    "NOPERM": ("does not let this user do what rota needs: docs/redis.md has the ACL", False),
    "NoPermission": ("does not let this user do what rota needs: docs/redis.md has the ACL", False),
    "NOAUTH": ("wants a login: put user and password into the URL", False),
    "WRONGPASS": ("refused the login; check user and password", False),
    "OOM": ("has no memory left: raise maxmemory or let workers catch up; nothing was written", True),
    "OutOfMemory": ("has no memory left: raise maxmemory or let workers catch up; nothing was written", True),
    "MISCONF": ("refuses writes because it cannot save its data", True),
    "NOREPLICAS": ("refuses writes because too few replicas follow it", True),
    "READONLY": ("is a replica and takes no writes; is a failover under way?", True),
    "ReadOnly": ("is a replica and takes no writes; is a failover under way?", True),
    "LOADING": ("is still loading its data", True),
    "BusyLoading": ("is still loading its data", True),
    "BUSY": ("is busy with a long script", True),
    "MASTERDOWN": ("has lost its primary; is a failover under way?", True),
    "CLUSTERDOWN": ("cannot serve this namespace now: the cluster is down", True),
    "MOVED": ("keeps sending this namespace elsewhere; is the cluster being changed?", True),
    "max number of clients": ("takes no more connections: raise maxclients or lower max_connections", True),
}
