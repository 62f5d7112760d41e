"""Middleware: async functions around every call of a handler: `async def timed(ctx, call): return await call()`."""

import inspect
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any, TypeAlias, cast

from rota.engine.context import Context

CallNext: TypeAlias = Callable[[], Awaitable[Any]]
"""Calls the next middleware, or the handler, and returns its result."""
Middleware: TypeAlias = Callable[[Context, CallNext], Awaitable[Any]]


def check_middleware(middleware: object) -> tuple[Middleware, ...]:
    """Return the middleware as a tuple; raise TypeError if one is no async function."""
    if not isinstance(middleware, Sequence) or isinstance(middleware, str | bytes):
        raise TypeError(f"middleware={middleware!r}: a list of async functions (ctx, call)")
    found = tuple(cast("Sequence[Middleware]", middleware))
    for each in found:
        is_async = inspect.iscoroutinefunction(each) or inspect.iscoroutinefunction(type(each).__call__)
        if not is_async:
            raise TypeError(f"middleware={middleware!r}: {each!r} is no async function (ctx, call)")
    return found


def around(middleware: Sequence[Middleware], context: Context, call: CallNext) -> Awaitable[Any]:
    """Return the call of a handler with its middleware around it, the first outermost."""
    for outer in reversed(middleware):
        call = partial(outer, context, call)
    return call()
