"""The control room: the built pages, as files that everybody may load. They hold no data; what they show, they ask of
the API with the credential of their visitor."""

import gzip
import mimetypes
import re
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct
from starlette.datastructures import Headers
from starlette.responses import RedirectResponse, Response
from starlette.types import Scope

PAGES = Path(__file__).parent / "pages"
"""Where `make ui` puts the pages."""
INDEX = "index.html"
ICON = "icon.svg"
ASSETS = "assets/"
"""The folder of files whose names change with what is in them."""
NOT_PAGES = ("/api/", "/health", "/ready", "/status", "/metrics")
FOREVER = "public, max-age=31536000, immutable"

WITHOUT_PAGES = """<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>rota</title></head>
<body>
<h1>rota serves its API here, without the control room</h1>
<p>The pages of the control room are not built. In a checkout of rota, build them with <code>make ui</code> and start
the service again. A wheel of rota holds them.</p>
<p>The API is at <code>api/v1</code>; <code>api/v1/openapi.json</code> describes it.</p>
</body>
</html>
"""


class File(Struct, frozen=True):
    content: bytes
    packed: bytes
    kind: str


class Pages:
    """The files of the control room, read once. A path that is no file is a page of the client: the index answers."""

    def __init__(self, folder: Path = PAGES) -> None:
        self._files: Mapping[str, File] = {
            path.relative_to(folder).as_posix(): _file(path) for path in sorted(folder.rglob("*")) if path.is_file()
        }
        self._index = self._files[INDEX].content.decode() if INDEX in self._files else WITHOUT_PAGES

    def __bool__(self) -> bool:
        return INDEX in self._files

    def find(self, scope: Scope, headers: Headers, path: str) -> Response | None:
        """Return the file or the page at `path`, which is below the root of the service; None for a path of the API.

        Whoever does not ask for HTML gets no page: a client of the API hears 401 and 404 as ever.
        """
        if scope["method"] not in ("GET", "HEAD"):
            return None
        name = ICON if path == "/favicon.ico" else path.removeprefix("/")
        if (file := self._files.get(name)) is not None and path != f"/{INDEX}":
            cache = FOREVER if path.startswith(f"/{ASSETS}") else "no-cache"
            return _response(file, headers, cache)
        if "text/html" not in headers.get("accept", "") or path.startswith(NOT_PAGES):
            return None
        if not path.startswith("/"):  # the mount itself: its relative addresses need the slash
            return RedirectResponse(f"{str(scope['path']).rpartition('/')[2]}/")
        return Response(
            self._index.replace("./", _up(scope)), media_type="text/html", headers={"Cache-Control": "no-cache"}
        )


def _file(path: Path) -> File:
    content = path.read_bytes()
    kind = mimetypes.guess_type(path.name)[0] or "application/octet-stream"
    kind = "text/javascript" if path.suffix == ".js" else kind
    return File(
        content, gzip.compress(content, mtime=0), f"{kind}; charset=utf-8" if kind.startswith("text/") else kind
    )


def takes_gzip(headers: Headers) -> bool:
    """Return whether the caller takes an answer as gzip: named, and not with the weight 0 (RFC 9110)."""
    for word in headers.get("accept-encoding", "").split(","):
        coding, _, weight = word.partition(";")
        if coding.strip().lower() == "gzip":
            return re.fullmatch(r"\s*q=0(\.0*)?\s*", weight, re.IGNORECASE) is None
    return False


def _response(file: File, headers: Headers, cache: str) -> Response:
    packs = takes_gzip(headers) and len(file.packed) < len(file.content)
    fields = {"Cache-Control": cache, "Content-Type": file.kind, "Vary": "Accept-Encoding"}
    return Response(
        file.packed if packs else file.content, headers=fields | ({"Content-Encoding": "gzip"} if packs else {})
    )


def _up(scope: Scope) -> str:
    """Return the way from a page to the root of the service. Relative, so that no proxy has to say its prefix."""
    raw = bytes(scope.get("raw_path") or str(scope["path"]).encode()).partition(b"?")[0]
    root, path = str(scope.get("root_path", "")), str(scope["path"])
    below = raw.count(b"/") - (root.count("/") if path.startswith(f"{root}/") else 0)
    return "../" * (below - 1) or "./"
