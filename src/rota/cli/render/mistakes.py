"""Wrong command lines: one sentence that says what is missing or unknown, and what to write."""

from cyclopts import CycloptsError, MissingArgumentError, UnusedCliTokensError

from rota.cli.render.text import one_line
from rota.domain.text import closest


def words_for(error: CycloptsError) -> str | None:
    """Return the sentence for a mistake that the parser would describe in its own terms; None for all others."""
    command = " ".join(error.command_chain or ())
    if type(error) is MissingArgumentError:
        return _missing(command, error)
    if isinstance(error, UnusedCliTokensError):
        return _unused(command, error)
    return None


def _missing(command: str, error: MissingArgumentError) -> str | None:
    argument = error.argument
    if argument is None:
        return None
    about = one_line(argument.parameter.help or "").rstrip(".")
    about = f" ({about[:1].lower()}{about[1:]})" if about else ""
    given = error.keyword or next((token.keyword for token in argument.tokens if token.keyword), None)
    problem = f"{argument.name} is missing" if given is None else f"{given} needs a value"
    return f"{command}: {problem}{about}; see rota {command} --help" if command else f"{problem}{about}"


def _unused(command: str, error: UnusedCliTokensError) -> str | None:
    word, *_ = error.unused_tokens or [""]
    if not command:
        return None
    near = closest(word, _commands(error))
    if near:
        return f"{command} has no command {word}; did you mean rota {command} {near[0]}?"
    if command in ("tasks", "tasks ls"):
        return f"tasks lists all of them and takes no name; see rota why {word} or rota runs ls --task {word}"
    return f"{command} takes no argument {word}; see rota {command} --help"


def _commands(error: CycloptsError) -> list[str]:
    """Return the subcommands of the command that was called."""
    app = error.app
    return [] if app is None else [name for name in app if not name.startswith("-")]
