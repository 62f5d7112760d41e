"""Which requirement a test shows. `make format` writes docs/requirements.md from these marks, and `make lint` fails
when the page is stale; `pytest -m "requirement(number='3.6')"` runs the tests of a requirement."""

import pytest

SECTIONS = {
    0: "Work that follows the activity of a user",
    1: "Schedules as a service",
    2: "Schedules inside a web process",
    3: "A day of dependent work",
    4: "Operations on a queue",
}
"""What the number before the dot stands for."""

NOT_BUILT = {
    "0.12": "Queue depths and figures of past runs are read over HTTP.",
    "0.13": "A worker outside of Python claims, renews and settles runs over HTTP.",
    "0.16": "Figures of past runs are kept for 400 days, by task and by what triggered the run.",
    "0.18": "Python code claims and settles runs one by one, without an engine.",
    "1.2": "Schedules are created, changed and deleted over HTTP.",
    "1.3": "One command, `rota serve`, starts a dedicated service.",
    "1.4": "A process of the service is a scheduler, a worker or both.",
    "1.6": "The service answers `/health`, `/ready`, `/status` and `/metrics` on a port.",
    "1.7": "Metrics count runs by status, durations, claims, lost leases and skipped work.",
    "1.8": "Alert rules cover a missing heartbeat, a high failure rate and lost leases.",
    "1.9": "A ready-made task calls an HTTP API on an allowed host.",
    "1.13": "Alert rules watch how fast the error budget is spent.",
    "1.14": "Existing code takes a renewed lease by name, without a task.",
    "1.15": "Schedules follow the rows of a table of the application in one step.",
    "1.16": "Recording rules offer the metrics under the names of older dashboards.",
    "1.17": "The schedules of APScheduler are imported with their weekdays and time zones.",
    "2.1": "In Django, the time zone comes from the settings of the project.",
    "2.6": "In Django, the engine starts under a web server and not under other commands.",
    "2.7": "Django has the commands `list_tasks`, `run_task` and `task_schedule`.",
    "2.9": "The status of each task is read over HTTP.",
    "2.10": "Metrics count runs, durations and skipped ticks by task.",
    "2.12": "`run_task` serves an external cron with its exit code.",
    "3.11": "The race day example runs inside a Flask application.",
    "4.1": "A run is submitted, and its result fetched by id, over HTTP.",
    "4.2": "Runs are cancelled, paused and resumed over HTTP.",
    "4.7": "The trace context of the submit reaches the worker.",
    "4.13": "The caller chooses the id of a run.",
}
"""What rota does not do yet. A number that a test shows as well is built in part."""


def requirement(number: str, text: str = "") -> pytest.MarkDecorator:
    """Mark a test of the requirement `number`. One test of each requirement says in `text` what rota has to do.

    The number is a section and a place in it ("3.6"), or a section and a letter ("3.a"): letters are for weaknesses
    that schedulers of this kind often have, and that rota must not have.
    """
    return pytest.mark.requirement(number=number, text=text)
