"""Find the function that a child calls, by its module and name in the code, never by stored data."""

import sys
from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any

from rota.engine.handler import Handler


def check_importable(fn: Callable[..., Any]) -> None:
    """Raise ValueError if a child cannot find `fn` by its module and name."""
    if sys.platform == "win32":
        raise ValueError('executor="process" needs a POSIX system')
    name, module = getattr(fn, "__qualname__", None), getattr(fn, "__module__", None)
    if not isinstance(name, str) or not isinstance(module, str):
        raise ValueError(f'{fn!r} has no name in a module; executor="process" needs a function that has')
    if "<lambda>" in name:
        raise ValueError('a lambda cannot be found by name in a child; executor="process" needs a def')
    if "<locals>" in name:
        raise ValueError(
            f"{name} is defined inside another function, where a child cannot find it; "
            'executor="process" needs a function at the top of a module (and functools.wraps in its decorators)'
        )
    if module == "__main__" and not _main_can_be_run_again():
        raise ValueError(f'{name} is not in a file that a child could import; executor="process" needs a module')


def _main_can_be_run_again() -> bool:
    """Return whether a child can run `__main__` again: not a prompt, not `-c`, not a `__main__.py`."""
    main = sys.modules["__main__"]
    spec = getattr(main, "__spec__", None)
    again = getattr(main, "__file__", None) is not None
    return again and (spec is None or spec.name.rpartition(".")[2] != "__main__")


def locate(handler: Handler) -> tuple[str, str]:
    """Return the module and name of the handler's function. Raises ValueError if that name means something else
    there."""
    check_importable(handler.fn)
    module, name = handler.fn.__module__, handler.fn.__qualname__
    try:
        found = resolve(sys.modules[module], name)
    except (KeyError, AttributeError):
        found = None
    if found is not handler.fn:
        raise ValueError(
            f"{module}.{name} is not the function of task {handler.name}: it was defined twice, or decorated after "
            '@app.task; executor="process" finds it by that name'
        )
    return module, name


def resolve(module: object, name: str) -> Callable[..., Any]:
    """Return the function of this name in `module`, also if `@app.task` has made a Task of it."""
    found: Any = module
    for part in name.split("."):
        found = getattr(found, part)
    return found if isinstance(found, FunctionType) else getattr(found, "fn", found)


def around_of(module: object, name: str) -> Sequence[Callable[..., Any]]:
    """Return the context managers that the app of a task has around every handler, if the name is that of a task."""
    found: Any = module
    for part in name.split("."):
        found = getattr(found, part)
    around: Sequence[Callable[..., Any]] = getattr(getattr(found, "_definition", None), "around", ())
    return around
