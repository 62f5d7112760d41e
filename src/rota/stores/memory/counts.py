"""Counters of the memory store."""

from collections.abc import Iterator

from rota.domain.run import Run, State


def counters_of(run: Run) -> Iterator[tuple[str, ...]]:
    """Yield the names of the counters that count this run."""
    if run.state is State.RUNNING:
        yield ("running", run.task)
        if run.key is not None:
            yield ("running", run.task, run.key)
        if run.losses and run.worker:
            yield ("suspect", run.worker)
    elif run.state is State.QUEUED:
        yield ("queued", run.task)
        if not run.needs:
            yield ("ready", run.task)
    elif run.state is State.PAUSED:
        yield ("paused", run.task)
