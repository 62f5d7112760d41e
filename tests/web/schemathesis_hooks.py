"""Schemathesis asks hundreds of times: a claim that may wait a minute waits a moment."""

from typing import Any

import schemathesis


@schemathesis.hook
def before_call(context: schemathesis.HookContext, case: "schemathesis.Case[Any]", kwargs: dict[str, object]) -> None:
    body = case.body
    if isinstance(body, dict):
        wait = body.get("wait")
        if isinstance(wait, int | float) and 0 < wait <= 60:
            body["wait"] = 0.01
