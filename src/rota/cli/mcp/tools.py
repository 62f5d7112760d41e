"""Tools: the routes of the service that an assistant may call. A tool is a route, so its rights and its audit hold."""

from collections.abc import Mapping
from typing import Any, cast

from msgspec import Struct

from rota.client.service import path_part

API = "/api/v1"
TEXT: dict[str, Any] = {"type": "string", "maxLength": 1000}
NOTE = {"note": TEXT | {"description": "Why; kept in the record of decisions."}}
RUN = {"id": TEXT | {"description": "The id of a run."}}
NAME = {"name": TEXT | {"description": "The name of a task."}}
SCHEDULE = {"id": TEXT | {"description": "The id of a schedule."}}
STATES = ["queued", "running", "paused", "succeeded", "failed", "cancelled"]
FILTER: dict[str, Any] = {
    "state": {"type": "string", "enum": STATES},
    "task": TEXT,
    "key": TEXT,
    "schedule": TEXT,
    "error": TEXT | {"description": "The type of an error, as ValueError."},
    "q": TEXT | {"description": "Text in id, key, task, error or arguments."},
    "since": {"type": "string", "format": "date-time"},
    "limit": {"type": "integer", "minimum": 1, "maximum": 100},
    "cursor": TEXT,
}


class Tool(Struct, frozen=True):
    """`{names}` in the path are arguments; the others are the query of a GET and the body of a POST."""

    name: str
    description: str
    method: str
    path: str
    properties: Mapping[str, Any] = {}
    required: tuple[str, ...] = ()

    @property
    def writes(self) -> bool:
        return self.method != "GET"

    def described(self) -> dict[str, object]:
        """Return the tool as the protocol lists it."""
        return {
            "name": self.name,
            "description": self.description,
            "inputSchema": {
                "type": "object",
                "properties": dict(self.properties),
                "required": list(self.required),
                "additionalProperties": False,
            },
            "annotations": {"readOnlyHint": not self.writes, "openWorldHint": False},
        }

    def request(self, given: Mapping[str, object]) -> tuple[str, dict[str, object]]:
        """Return the path and what is left for the query or the body. Raise ValueError for wrong arguments."""
        if unknown := given.keys() - self.properties.keys():
            raise ValueError(f"{self.name} has no argument {min(unknown)}")
        if missing := [name for name in self.required if name not in given]:
            raise ValueError(f"{self.name} needs {missing[0]}")
        rest, path = dict(given), self.path
        for name in self.required:
            if f"{{{name}}}" in path:
                path = path.replace(f"{{{name}}}", path_part(str(rest.pop(name))))
        return f"{API}{path}", rest


READS = [
    Tool(
        "why",
        "Why does something not run? Ask about a task, a run or a schedule; the answer names what holds it back.",
        "GET",
        "/why",
        {"subject": TEXT | {"description": "A task, a schedule, or the id of a run."}, "key": TEXT},
        ("subject",),
    ),
    Tool("runs", "Runs by filter, newest first.", "GET", "/runs", FILTER),
    Tool("run", "One run: its state, attempts and errors.", "GET", "/runs/{id}", RUN, ("id",)),
    Tool("tasks", "All tasks, with how many runs wait and run.", "GET", "/tasks"),
    Tool("schedules", "Schedules, with their next and last ticks.", "GET", "/schedules", {"task": TEXT, "q": TEXT}),
    Tool("workers", "The workers, what they can do, and since when they are silent.", "GET", "/workers"),
    Tool("decisions", "What was decided: what did not run, who paused what.", "GET", "/decisions", {"task": TEXT}),
    Tool("preview", "What will fire in the next days.", "GET", "/preview", {"days": {"type": "integer", "minimum": 1}}),
    Tool("doctor", "Checks of the store and the settings, with advice.", "GET", "/doctor"),
]
WRITES = [
    Tool(
        "submit",
        "Submit a run of a task.",
        "POST",
        "/runs",
        {"task": TEXT, "args": {"type": "object"}, "key": TEXT} | NOTE,
        ("task",),
    ),
    Tool("retry_run", "Do the work of an ended run again.", "POST", "/runs/{id}/retry", RUN | NOTE, ("id",)),
    Tool("cancel_run", "Cancel a run.", "POST", "/runs/{id}/cancel", RUN | NOTE, ("id",)),
    Tool("pause_task", "Start no more runs of a task.", "POST", "/tasks/{name}/pause", NAME | NOTE, ("name",)),
    Tool("resume_task", "Let runs of a task start again.", "POST", "/tasks/{name}/resume", NAME | NOTE, ("name",)),
    Tool("pause_schedule", "Fire no tick of a schedule.", "POST", "/schedules/{id}/pause", SCHEDULE | NOTE, ("id",)),
    Tool("resume_schedule", "Let a schedule fire again.", "POST", "/schedules/{id}/resume", SCHEDULE | NOTE, ("id",)),
]


def arguments_of(params: Mapping[str, object]) -> Mapping[str, object]:
    given: object = params.get("arguments") or None
    if given is None:
        return {}
    if not isinstance(given, dict):
        raise ValueError("arguments: an object")
    return cast("Mapping[str, object]", given)
