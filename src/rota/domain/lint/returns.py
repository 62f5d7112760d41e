"""Does a function return a dict with a status? Its source is read; if that is not clear, the answer is no."""

import ast
import textwrap
from collections.abc import Iterator

BAD = frozenset({"failed", "partial", "failure", "error"})
Function = ast.FunctionDef | ast.AsyncFunctionDef


def returns_a_status(source: str) -> bool:
    """Return whether a function may return a dict whose "status" says that the work failed.

    True if a returned dict literal or a returned variable has a "status" that is such a word or is not a constant, and
    if the function itself reads the "status" of a returned variable.
    """
    try:
        tree = ast.parse(textwrap.dedent(source))
    except (SyntaxError, ValueError):  # for example a lambda inside a call
        return False
    function = next((node for node in ast.walk(tree) if isinstance(node, Function)), None)
    if function is None:
        return False
    own = list(_own(function))
    returned = [node.value for node in own if isinstance(node, ast.Return) and node.value is not None]
    if any(_is_bad(value) for value in returned):
        return True
    names = {value.id for value in returned if isinstance(value, ast.Name)}
    return any(_sets_or_reads(node, names) for node in own)


def _own(function: Function) -> Iterator[ast.AST]:
    """Yield the nodes of a function, without those of functions and classes inside it."""
    waiting: list[ast.AST] = list(function.body)
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, Function | ast.Lambda | ast.ClassDef):
            waiting += ast.iter_child_nodes(node)


def _is_bad(value: ast.expr) -> bool:
    """Return whether `value` is a dict literal, or a `dict(...)`, whose status may be a failure."""
    if isinstance(value, ast.Dict):
        pairs = zip(value.keys, value.values, strict=True)
        return any(isinstance(key, ast.Constant) and key.value == "status" and _may_fail(found) for key, found in pairs)
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id == "dict":
        return any(word.arg == "status" and _may_fail(word.value) for word in value.keywords)
    return False


def _may_fail(status: ast.expr) -> bool:
    return status.value in BAD if isinstance(status, ast.Constant) else True


def _sets_or_reads(node: ast.AST, names: set[str]) -> bool:
    match node:
        case ast.Assign(targets=targets, value=value):
            if any(isinstance(target, ast.Name) and target.id in names for target in targets):
                return _is_bad(value)
            return any(_is_status(target, names) for target in targets) and _may_fail(value)
        case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
            return name in names and _is_bad(value)
        case ast.Subscript(ctx=ast.Load()):
            return _is_status(node, names)
        case _:
            return False


def _is_status(node: ast.expr, names: set[str]) -> bool:
    """Return whether `node` is `result["status"]` of a returned variable."""
    match node:
        case ast.Subscript(value=ast.Name(id=name), slice=ast.Constant(value="status")):
            return name in names
        case _:
            return False
