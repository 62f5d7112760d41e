"""The pages that the `type` of a problem names."""

from html import escape
from typing import Any

from rota.web.problems import MEANINGS, TITLES, WORDS, Problem
from rota.web.routes import Answer, Call, HtmlText, NoQuery, Route, get

_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{status} {title}</title></head>
<body><h1>{status} {title}</h1><p>{meaning}</p></body></html>
"""


async def page(call: Call[NoQuery, None]) -> Answer:
    for status, word in WORDS.items():
        if word == call.path["word"]:
            text = _PAGE.format(status=status, title=escape(TITLES[status]), meaning=escape(MEANINGS[status]))
            return Answer(text.encode(), headers={"Content-Type": "text/html; charset=utf-8"})
    raise Problem(404, "there is no such problem")


ROUTES: list[Route[Any, Any]] = [
    get("/problems/{word}", "What a problem means, for people", None, page, HtmlText, open=True),
]
