"""Write the table of routes into docs/http.md, or check that it is fresh.

python -m tools.http_page [--check]
"""

import sys
from pathlib import Path
from typing import Any

from rota.web.openapi import document
from rota.web.routes import API, Route
from rota.web.table import ROUTES

PAGE = Path(__file__).parents[1] / "docs" / "http.md"
BEGIN, END = "<!-- generated: python -m tools.http_page -->\n", "<!-- end of what is generated -->\n"


def table() -> str:
    """Return the routes as Markdown, in the order of the table in the code."""
    described = document(ROUTES)
    parts: list[str] = []
    before = ""
    for route in ROUTES:
        group = route.template.removeprefix(API).strip("/").split("/")[0]
        if group != before:
            parts.append(f"\n### {group}\n\n| Route | Right | Does | Takes | Answers |\n|---|---|---|---|---|\n")
            before = group
        parts.append(_row(route, described))
    return "".join(parts) + "\n"


def _row(route: Route[Any, Any], described: dict[str, Any]) -> str:
    found = described["paths"][route.template][route.method.lower()]
    right = "everybody" if route.open else str(route.right or "any credential")
    takes = [f"`?{p['name']}`" for p in found["parameters"] if p["in"] == "query"]
    takes += [f"`{p['name']}:`" for p in found["parameters"] if p["in"] == "header"]
    if route.body is not None:
        fields = ", ".join(f"`{name}`" for name in route.body.__struct_encode_fields__)
        takes.append(f"body: {fields}")
    answers = ", ".join(str(status) for status in (*route.answers, *route.also))
    return f"| `{route.method} {route.template}` | {right} | {route.summary} | {' '.join(takes)} | {answers} |\n"


def fresh(text: str) -> str:
    """Return the page with a table of today."""
    before, _, rest = text.partition(BEGIN)
    after = rest.partition(END)[2]
    return before + BEGIN + table() + END + after


def main() -> int:
    text = PAGE.read_text()
    if "--check" in sys.argv[1:]:
        if text != fresh(text):
            print("docs/http.md is stale: python -m tools.http_page")
            return 1
        return 0
    PAGE.write_text(fresh(text))
    return 0


if __name__ == "__main__":
    sys.exit(main())
