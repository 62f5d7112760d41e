"""Tasks as the fourth source document has them: plain functions that return how it went. In a module of their own, so
that a child process finds them."""

from typing import Any

from rota import Context


def told(status: str) -> dict[str, Any]:
    return {"status": status, "message": "no data", "errors": ["R1C1: timeout", "R1C2: timeout"], "warnings": ["late"]}


def dated(ctx: Context, date_string: str) -> list[str | None]:
    return [ctx.period, ctx.run.origin.period, date_string]
