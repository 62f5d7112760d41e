"""`rota completion`: the script with which a shell completes commands and options."""

from typing import Literal

from rota.cli.options.parameters import Shared
from rota.cli.render.show import Show


def completion(shell: Literal["bash", "zsh", "fish"], /, *, show: Shared[Show]) -> None:
    """Print the completion script of a shell.

    In bash, write this into ~/.bashrc: source <(rota completion bash)

    For zsh, into a folder of $fpath: rota completion zsh > FOLDER/_cyclopts_rota

    For fish: rota completion fish > ~/.config/fish/completions/rota.fish

    Parameters
    ----------
    shell
        Which shell.
    """
    from rota.cli.tree import app

    show.line(app.generate_completion(prog_name="rota", shell=shell))
