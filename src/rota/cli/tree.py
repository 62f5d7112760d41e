"""The tree of all commands, and the options that every command takes."""

import os
from collections.abc import Sequence
from importlib.metadata import version
from typing import Annotated, Literal

from cyclopts import App, Parameter

from rota.cli.deploy.diff import diff, sync
from rota.cli.deploy.lint import lint_schedules
from rota.cli.deploy.migrate import migrate_store
from rota.cli.deploy.move import move_store
from rota.cli.deploy.settings import show_settings
from rota.cli.doctor.doctor import doctor
from rota.cli.flows.commands import flows
from rota.cli.flows.marks import marks
from rota.cli.flows.reset import reset
from rota.cli.forecast.cron import cron
from rota.cli.forecast.preview import preview
from rota.cli.missing_store import missing_for
from rota.cli.movein.commands import movein
from rota.cli.options.parameters import CARE, EVERYWHERE, LOOK, WORK, Flag, Shared
from rota.cli.options.target import Target
from rota.cli.render.show import Show
from rota.cli.runs.audit import audit
from rota.cli.runs.commands import runs
from rota.cli.runs.events import events
from rota.cli.runs.stats import stats
from rota.cli.runs.submit import submit
from rota.cli.runs.undo import undo
from rota.cli.runs.watch import watch
from rota.cli.runs.why import why_not
from rota.cli.schedules.commands import schedules
from rota.cli.serve.health import health
from rota.cli.serve.serve import serve
from rota.cli.serve.token import token
from rota.cli.tasks.call import call
from rota.cli.tasks.clear import clear
from rota.cli.tasks.commands import tasks
from rota.cli.tasks.freeze import freeze, thaw
from rota.cli.tasks.overriding import set_
from rota.cli.tasks.trying import try_
from rota.cli.worker.dev import dev
from rota.cli.worker.worker import worker
from rota.cli.worker.workers import workers

EXIT_CODES = (
    "Exit codes: 0 done; 1 it failed, was refused or ran out of time; 2 it was asked wrongly; "
    "3 rota diff found changes, or rota import a difference without a name; "
    "75 a worker has reached --max-runs or --max-memory; 130 interrupted."
)

app = App(
    name="rota",
    help="Work that runs on time, once, and visibly.",
    version=lambda: f"rota {version('rota')}",
    help_epilogue=EXIT_CODES,
    help_format="plaintext",
    version_format="plaintext",
)
app.meta.group_parameters = EVERYWHERE
for flag in ("--help", "--version"):
    app[flag].group = EVERYWHERE

app.command(worker, group=WORK)
app.command(dev, group=WORK)
app.command(serve, group=WORK)
app.command(health, group=LOOK)
app.command("rota.cli.mcp.command:mcp", name="mcp", group=LOOK, help="Answer an assistant (Model Context Protocol).")
app.command(submit, group=WORK)
app.command(call, group=WORK)
app.command("rota.cli.demo.demo:demo", name="demo", group=WORK, help="Watch a small rota at work, in a browser.")
tasks.command(try_, name="try")
tasks.command(set_, name="set")
app.command(tasks)
app.command(runs)
app.command(schedules)
app.command(flows)
app.command(marks)
app.command(workers)
app.command(watch, group=LOOK)
app.command(events, group=LOOK)
app.command(audit, group=LOOK)
app.command(stats, group=LOOK)
app.command(undo, group=LOOK)
app.command(why_not, name="why", group=LOOK)
app.command(clear, group=LOOK)
app.command(freeze, group=LOOK)
app.command(thaw, group=LOOK)
app.command(reset, group=LOOK)
app.command(preview, group=LOOK)
app.command(cron, group=LOOK)
app.command(diff, group=CARE)
app.command(sync, group=CARE)
app.command(lint_schedules, name="lint", group=CARE)
app.command(doctor, group=CARE)
app.command(show_settings, name="settings", group=CARE)
app.command(migrate_store, name="migrate", group=CARE)
app.command(move_store, name="move", group=CARE)
app.command(movein)
app.command(token)


@app.command(group=CARE)
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
    show.line(app.generate_completion(prog_name="rota", shell=shell))


@app.meta.default
def with_options(
    *tokens: Annotated[str, Parameter(show=False, allow_leading_hyphen=True)],
    reference: Annotated[
        str | None,
        Parameter(
            name=("--app", "-A"),
            help="The app, as module:attribute [app in rota.toml, ROTA_APP, or [tool.rota] in pyproject.toml].",
        ),
    ] = None,
    url: Annotated[str | None, Parameter(help="The store, instead of the app's own [ROTA_URL].")] = None,
    json: Annotated[bool, Flag, Parameter(help="Answer in JSON.")] = False,
    debug: Annotated[bool, Flag, Parameter(help="Show tracebacks [ROTA_DEBUG=1].")] = False,
) -> int:
    """Read the options of every command, then run the command."""
    del debug  # read by rota.cli.run, which also sees errors of this parse
    command, bound, shared = app.parse_args(tokens, exit_on_error=False, print_error=False)
    server = os.environ.get("ROTA_SERVER")
    if server and url is None:
        from rota.cli.remote.commands import remotely  # a command on a store does not pay for its import

        words = [word for word in tokens if not word.startswith("-")][:2]
        answered = remotely(command, bound.arguments, Show(json), server, words)
        if answered is not None:
            return answered
    made = {"target": Target(reference, url, missing_for(command)), "show": Show(json)}
    code = command(*bound.args, **bound.kwargs, **{name: made[name] for name in shared})
    return code if isinstance(code, int) else 0


def launch(arguments: Sequence[str]) -> int:
    """Run one command line and return its exit code; a command that returns None exits with 0."""
    code = app.meta(list(arguments), exit_on_error=False, print_error=False, result_action="return_value")
    return code if isinstance(code, int) else 0
