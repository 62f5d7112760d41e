"""Masking: a store's URL as it may be shown to people."""

import re

_PASSWORD = re.compile(
    r"^([^:/?#]+://[^:@/?#]*):"
    r"(?!\d{1,5}(?:[/?#]|$))"  # a port
    r"(?:[^/?#]*@|.*@)",  # the latter for a password that should have been percent-encoded
    re.DOTALL,
)
_SECRET = re.compile(r"([?&][^=&#]*(?:password|passwd|secret|token|listen_url)[^=&#]*=)[^&#]*", re.IGNORECASE)


def masked(url: str) -> str:
    """The URL as it may be shown: its password, and what looks like one in its query, as ***."""
    return _SECRET.sub(r"\1***", _PASSWORD.sub(r"\1:***@", url))
