"""The end of a run that a command waited for: its result, or an error."""

from rota.cli.render.show import Show, to_json
from rota.domain.run import Run, State
from rota.errors import RotaError, RunCancelled, RunFailed
from rota.views.runs import result_view


def result_text(run: Run) -> str:
    """Return the result of a run: a string as it is, everything else as JSON."""
    result = result_view(run)
    return result if isinstance(result, str) else to_json(result)


def show_result(show: Show, run: Run) -> None:
    if run.state is State.SUCCEEDED:
        show.line(result_text(run))


def judge(run: Run) -> None:
    """Raise RunFailed or RunCancelled if the run did not succeed."""
    if run.state is State.FAILED:
        raise RunFailed(run)
    if run.state is State.CANCELLED:
        raise RunCancelled(run)


def too_late(error: TimeoutError) -> RotaError:
    return RotaError(f"{error}; it goes on")
