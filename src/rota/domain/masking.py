"""Masking: the URL of a store without its passwords."""

import re

_PASSWORD = re.compile(
    r"^([^:/?#]+://[^:@/?#]*):"
    r"(?!\d{1,5}(?:[/?#]|$))"  # a port
    r"(?:[^/?#]*@|.*@)",  # for a password that is not percent-encoded
    re.DOTALL,
)
_SECRET = re.compile(r"([?&][^=&#]*(?:password|passwd|secret|token|listen_url)[^=&#]*=)[^&#]*", re.IGNORECASE)


def masked(url: str) -> str:
    """Return the URL with *** for its password and for each parameter that looks like a password."""
    return _SECRET.sub(r"\1***", _PASSWORD.sub(r"\1:***@", url))
