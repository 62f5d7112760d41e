"""LateStore: a store whose URL a function says when the store is needed."""

import threading
from collections.abc import Callable

from rota.store import Backend


class LateStore:
    """`url` is asked each time, because the answer may change before the store is opened: a test runner renames the
    database of a project after its code was imported. `connect` makes the backend of a URL, once."""

    def __init__(self, url: Callable[[], str], connect: Callable[[str], Backend]) -> None:
        self._url = url
        self.connect = connect
        self._lock = threading.Lock()
        self._known: dict[str, Backend] = {}

    @property
    def url(self) -> str:
        """The URL of the store now, with its secrets."""
        return self._url()

    @property
    def backend(self) -> Backend:
        url = self._url()
        with self._lock:
            if url not in self._known:
                self._known[url] = self.connect(url)
            return self._known[url]
