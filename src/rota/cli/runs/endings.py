"""How a run that was waited for is told: its result, or why it has none."""

from rota.cli.render.show import Show, to_json
from rota.domain.run import Run, State
from rota.errors import RotaError, RunCancelled, RunFailed
from rota.views.values import from_json


def result_text(run: Run) -> str:
    """A result as people want it: text as it is, the rest as JSON."""
    result = from_json(run.result or b"null")
    return result if isinstance(result, str) else to_json(result)


def tell_result(show: Show, run: Run) -> None:
    if run.state is State.SUCCEEDED:
        show.line(result_text(run))


def judge(run: Run) -> None:
    """Raises for what ended otherwise than well."""
    if run.state is State.FAILED:
        raise RunFailed(run)
    if run.state is State.CANCELLED:
        raise RunCancelled(run)


def too_late(error: TimeoutError) -> RotaError:
    return RotaError(f"{error}; it goes on")
