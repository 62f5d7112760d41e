"""A worker outside the app: it gets pending work, does it, and says what came of it, each time with the token of its
claim. Here in Python; over HTTP any language does the same."""

from rota import Backend, PullWorker

TRANSCRIBE = {"description": "Turn speech into text.", "timeout": 300, "retry": 3}
"""The task as it is declared over HTTP, `PUT /rota/api/v1/tasks/transcribe`: the app has no code for it."""


async def transcribe(at: str | Backend, token: str | None = None, wait: float = 20.0) -> list[str]:
    """Do what waits at a store or at the URL of a service, and return the answers: `applied`, or `stale` if another
    worker has the run by now."""
    answers: list[str] = []
    async with PullWorker(at, ["transcribe"], token=token) as worker:
        for run in await worker.claim(free=5, wait=wait):
            try:
                answers.append(await worker.succeed(run, f"{run.args['path']} as text"))
            except KeyError as error:
                answers.append(await worker.fail(run, error))
    return answers
