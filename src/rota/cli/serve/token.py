"""`rota token`: make tokens for the service."""

from typing import Annotated

from cyclopts import App, Parameter

from rota.cli import OK
from rota.cli.options.parameters import CARE, Flag, Shared
from rota.cli.render.show import Show
from rota.errors import MissingExtra

token = App(name="token", group=CARE, help="Make tokens for `rota serve`.", help_format="plaintext")


@token.command
def new(
    name: str,
    /,
    *,
    role: Annotated[str, Parameter(help="viewer, submitter, worker, operator or admin.")] = "viewer",
    tasks: Annotated[tuple[str, ...], Flag, Parameter(help="Only for this task; may be repeated.")] = (),
    namespaces: Annotated[
        tuple[str, ...], Flag, Parameter(help="Only in this namespace of the service; may be repeated.")
    ] = (),
    show: Shared[Show],
) -> int:
    """Print a new token once, and the lines for the file that ROTA_TOKENS names. Nothing is stored.

    Parameters
    ----------
    name
        Whose token it is; what it does is written down under this name.
    """
    try:
        from rota.web.rights import rights_of
        from rota.web.tokens import fingerprint, new_token
    except ImportError as error:
        raise MissingExtra(f'rota token needs {error.name}: pip install "rota[web]"') from None
    rights_of(role)
    made = new_token()
    lines = [f"[{_quoted(name)}]", f'sha256 = "{fingerprint(made)}"', f'role = "{role}"']
    for limit, names in (("tasks", tasks), ("namespaces", namespaces)):
        if names:
            lines.append(f"{limit} = [{', '.join(map(_quoted, names))}]")
    if show.json:
        show.value({"name": name, "token": made, "toml": "\n".join(lines)})
        return OK
    show.line(made)
    show.note("keep the token: it is not shown again. Put these lines into the file that ROTA_TOKENS names:")
    for line in lines:
        show.note(line)
    return OK


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
