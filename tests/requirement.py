"""What rota has to do, and the mark of a test that shows it. `make format` writes docs/requirements.md from both, and
`make lint` fails when a requirement has no test; `pytest -m "requirement(number='3.6')"` runs the tests of one."""

from typing import NamedTuple

import pytest

SECTIONS = {
    0: "Work that follows the activity of a user",
    1: "Schedules as a service",
    2: "Schedules inside a web process",
    3: "A day of dependent work",
    4: "Operations on a queue",
}
"""What the number before the dot stands for."""


class Requirement(NamedTuple):
    """One row. A requirement with both texts is built in part."""

    built: str = ""
    """What rota does. At least one test has the mark."""
    not_yet: str = ""
    """What rota does not do yet."""


REQUIREMENTS = {
    "0.1": Requirement("A task follows the activity of each user with a delay, or a period for all users."),
    "0.2": Requirement(
        "The configuration of a task is set in code or in `rota.toml`, kept in the store and seen by every process."
    ),
    "0.3": Requirement(
        "A key of a user has up to three parts, user, device and agent, and can be built and read back."
    ),
    "0.4": Requirement("A touch while a run waits keeps its due time or pushes it, and brings the newest arguments."),
    "0.5": Requirement("A touch is refused while the last run of its key is more recent than `spacing`."),
    "0.6": Requirement(
        "After several failures in a row new work of a key is refused until the breaker has cooled down."
    ),
    "0.7": Requirement(
        "A touch never raises for an unknown or disabled task or a lost store: it answers no, with the reason."
    ),
    "0.8": Requirement(
        "One worker gets a run, only when the run is due, and only the holder of the lease ends the run."
    ),
    "0.9": Requirement(
        "A process never holds more runs than `concurrency`, and takes the next run without waiting for a poll."
    ),
    "0.10": Requirement("The outcome of a run is recorded after a cancellation and after a failed write to the store."),
    "0.11": Requirement(
        "A stop lets handlers finish, then cancels them and awaits their cleanup, and a second start does no harm."
    ),
    "0.12": Requirement(
        "Tasks, their configuration, their waiting runs and figures of past runs are listed, also over HTTP."
    ),
    "0.13": Requirement("A worker outside of Python claims, renews and settles runs over HTTP."),
    "0.14": Requirement(
        "A returned value can mean failure, a waiting run can expire, and every run knows its origin and its app."
    ),
    "0.15": Requirement("The names of an unknown device and agent are configuration, and a run counts its touches."),
    "0.16": Requirement("Figures of past runs are kept for 400 days, by task and by what triggered the run."),
    "0.17": Requirement("A cancelled run counts neither for `spacing` nor for the breaker."),
    "0.18": Requirement("Python code claims and settles runs one by one, without an engine."),
    "0.a": Requirement("A crash after a run was taken neither loses the run nor blocks its user."),
    "0.b": Requirement("A timeout is enforced, and a lease is renewed for as long as the work takes."),
    "0.c": Requirement("Activity during a run queues exactly one more run behind it."),
    "0.d": Requirement("Work starts when it is due, and a period does not drift."),
    "1.1": Requirement("Any number of schedulers makes one run of each tick."),
    "1.2": Requirement(
        "Schedules survive a restart, are changed over HTTP, and a running scheduler notices a change at once."
    ),
    "1.3": Requirement(
        "An environment variable turns the embedded engine off, and `rota serve` starts a service of its own."
    ),
    "1.4": Requirement(
        "Each instance has a random name that no other instance has. "
        "A process of the service is a scheduler, a worker or both."
    ),
    "1.5": Requirement("A lease of 30 seconds is renewed for as long as its handler works."),
    "1.6": Requirement("The service answers `/health`, `/ready`, `/status` and `/metrics` on a port."),
    "1.7": Requirement("Metrics count runs by status, durations, claims, lost leases and skipped work."),
    "1.8": Requirement("Alert rules cover a missing heartbeat, a high failure rate and lost leases."),
    "1.9": Requirement(
        "The history of a schedule names each tick, its run and the outcome. "
        "A ready-made task calls an HTTP API on an allowed host."
    ),
    "1.10": Requirement("Real processes on real stores make one run of each tick, also when they are killed."),
    "1.11": Requirement(
        "A move to another store keeps each next tick, and the changes of a deploy are shown beforehand."
    ),
    "1.12": Requirement(
        "The engine moves between a dedicated and an embedded process and back without a lost or doubled tick."
    ),
    "1.13": Requirement(
        "Seven days with four schedulers and a crash about every hour bring no duplicate and no missed tick. "
        "Alert rules watch how fast the error budget is spent."
    ),
    "1.14": Requirement("Existing code takes a renewed lease by name, without a task."),
    "1.15": Requirement("Schedules follow the rows of a table of the application in one step."),
    "1.16": Requirement("Recording rules offer the metrics under the names of older dashboards."),
    "1.17": Requirement(
        "The schedules of APScheduler are imported with their weekdays and zones; no tick is missed or doubled."
    ),
    "1.a": Requirement("Weekdays are numbered from Sunday, 0 and 7, and have names."),
    "1.b": Requirement("A skipped tick leaves a record with the reason."),
    "2.1": Requirement(
        "`DailyAt` is in the time zone of the project, in Django that of its settings, and exactly now means tomorrow."
    ),
    "2.2": Requirement("`Every` takes a jitter and is late by at most that much."),
    "2.3": Requirement("`Cron`, `Weekly` and `Monthly` fire when they say."),
    "2.4": Requirement("A registered function stays callable as a function."),
    "2.5": Requirement(
        "A dead loop of the engine is restarted and reported, and a blocked event loop is reported with its stack."
    ),
    "2.6": Requirement("In Django, the engine starts under a web server and not under other commands."),
    "2.7": Requirement(
        "The status says when each task comes next, and Django has `list_tasks`, `run_task` and `task_schedule`."
    ),
    "2.8": Requirement("Nothing runs at the start, and a tick that overlaps a run is skipped with a warning."),
    "2.9": Requirement(
        "The status says of each task whether it is alive and running, also over HTTP, and the log says what happens."
    ),
    "2.10": Requirement("Metrics count runs, durations and skipped ticks by task."),
    "2.11": Requirement("The log has a line for scheduled, started, completed, failed, restarted and skipped."),
    "2.12": Requirement("`run_task` serves an external cron with its exit code."),
    "2.a": Requirement("A missed run is made up, and an interval does not drift."),
    "2.b": Requirement("A run that hangs ends at its timeout and is seen."),
    "2.c": Requirement("A day with a clock change has its three o'clock."),
    "3.1": Requirement("A flow has steps with several parents, and steps that share a parent run beside each other."),
    "3.2": Requirement("A recheck passes over what is done, leaves what waits, and runs again what failed."),
    "3.3": Requirement("A task is done once in a period, and a refusal says whether it is running or already done."),
    "3.4": Requirement("A task without `once` runs at every tick."),
    "3.5": Requirement(
        "A plan makes one run per item around the time of the item, skips the past, and is done only as a whole."
    ),
    "3.6": Requirement("A run is recorded as succeeded, skipped, failed or partial, with its errors and warnings."),
    "3.7": Requirement("Timestamps in seconds and in milliseconds mean the same instant."),
    "3.8": Requirement("A synchronous task calls async services without blocking the worker."),
    "3.9": Requirement("A day is reset, a task is run again, and rota says why a task does not run."),
    "3.10": Requirement("A task can return its status as a dictionary, and a returned failure does not count as done."),
    "3.11": Requirement(
        "Synchronous code plans and starts flows, also in a Flask app, and periods have the format of the app."
    ),
    "3.12": Requirement("A plan reports the items whose time an earlier plan missed."),
    "3.a": Requirement("The key, the mark and the need of a step come from one name."),
    "3.b": Requirement("A lease is released only by its holder."),
    "3.c": Requirement("A failed parent says which steps it blocks, and a late step is reported."),
    "3.d": Requirement("A planned run follows an item that moves, disappears or comes back."),
    "4.1": Requirement("A submit does not wait for the run, and the result is fetched later by id, also over HTTP."),
    "4.2": Requirement("A run is cancelled, paused and resumed, also over HTTP."),
    "4.3": Requirement("The same code works on every store, and the environment chooses the store."),
    "4.4": Requirement("A full queue lets the sender wait, or refuses at once when told to."),
    "4.5": Requirement(
        "An unreachable server fails the start, and a missing driver names the command that installs it."
    ),
    "4.6": Requirement("Calls to the store are tried again, and a lost reply never makes a second run."),
    "4.7": Requirement("The trace context of the submit reaches the worker, in another process too."),
    "4.8": Requirement("The health of the store and the length of a queue are read, and a queue is cleared."),
    "4.9": Requirement("The app is a context manager, and it can be stopped twice."),
    "4.10": Requirement(
        "The URL of a store is built from its parts, and holds the namespace and the size of the connection pool."
    ),
    "4.11": Requirement("A variable of the platform names the store, and the patience of a client is a setting."),
    "4.12": Requirement(
        "A known task without waiting runs has the queue length 0, and the next runs are listed in claim order."
    ),
    "4.13": Requirement("The caller chooses the id of a run."),
    "4.a": Requirement("A cancel does not wait behind the run that it is about."),
    "4.b": Requirement("A crash in the middle of a run does not lose the run."),
    "4.c": Requirement("A run with arguments that do not fit is set aside, and the other runs go on."),
}
"""Every requirement by its number: a section and a place in it ("3.6"), or a section and a letter ("3.a"). Letters are
for weaknesses that schedulers of this kind often have, and that rota must not have."""


def requirement(number: str) -> pytest.MarkDecorator:
    """Mark a test that shows the requirement `number`."""
    return pytest.mark.requirement(number=number)
