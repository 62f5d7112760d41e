"""Settings: every setting of a process, its default and its meaning. Contradictions raise InvalidOptions here."""

import re
from typing import Annotated, Literal

from msgspec import Struct, field

from rota.domain.policy import FAR
from rota.domain.text import masked
from rota.domain.triggers.zones import find_zone
from rota.domain.tuning import Retention, Tuning, check_tuning
from rota.errors import InvalidOptions
from rota.settings.overrides import TaskOverride
from rota.settings.readers import Seconds, says
from rota.settings.urls import in_namespace, sqlite_url
from rota.store import ID_MEMORY, RETRY_WINDOW

Path = tuple[str, ...]
"""The path of a setting: ("lease",) or ("tasks", "resize", "retry", "limit")."""


_TUNING = Tuning()
_KEEP = _TUNING.retention

LogLevel = Literal["debug", "info", "warning", "error"]
LogFormat = Literal["text", "json"]
Colour = Literal["red", "amber", "green", "blue", "violet", "grey"]


class Settings(Struct, frozen=True, kw_only=True):
    """Made by `load`, which fills `sources`."""

    url: Annotated[
        str,
        says("The store; env:NAME is that of the variable NAME. By default SQLite in .rota/."),
    ] = field(default_factory=sqlite_url)
    namespace: Annotated[
        str | None, says("Keeps apps apart on one server: Redis keys' prefix, PostgreSQL's schema.")
    ] = None
    app: Annotated[str | None, says("The app for the command line, as module:attribute.")] = None
    name: Annotated[str, says("What this app is called: it owns the schedules that its code declares.")] = "rota"
    version: Annotated[
        str | None, says('The version of this app: AtStart(each="version") fires once for each version.')
    ] = None
    environment: Annotated[
        str | None, says("Where this app runs, such as production: every page of the control room shows it.")
    ] = None
    environment_colour: Annotated[
        Colour | None, says("Its colour there: red, amber, green, blue, violet or grey; by default by its name.")
    ] = None
    tz: Annotated[str, says("The time zone of triggers that name none.")] = "UTC"
    enabled: Annotated[bool, says("If false, `async with app` is only a client: nothing runs here.")] = True
    concurrency: Annotated[int, says("Seats: how many runs this process works on at once.")] = _TUNING.concurrency
    queues: Annotated[tuple[str, ...], says("The queues whose runs this process takes; by default all queues.")] = ()
    http_hosts: Annotated[
        tuple[str, ...],
        says("Hosts that the built-in task http may call, and networks that are not public; by default no task http."),
    ] = ()
    heartbeat_url: Annotated[
        str | None,
        says("A URL that a schedule calls while this rota works, for a monitor that tells when no call comes."),
    ] = None
    heartbeat_every: Annotated[Seconds, says("Seconds between two such calls; from 1.")] = 60.0
    lease: Annotated[Seconds, says("Seconds after which a silent worker's runs go to another.")] = _TUNING.lease
    renew: Annotated[Seconds, says("Seconds between renewals of a lease; 0 for a third of it.")] = _TUNING.renew
    silence: Annotated[
        Seconds,
        says("Seconds for which a worker keeps its runs while a call blocks it, before they go to another; from 1."),
    ] = _TUNING.silence
    rescue: Annotated[Seconds, says("Seconds between looks for lapsed leases; 0 for a sixth of one.")] = _TUNING.rescue
    grace: Annotated[Seconds, says("Seconds that running handlers have to end when the app stops.")] = _TUNING.grace
    sweep: Annotated[Seconds, says("Seconds between sweeps of what is expired or old.")] = _TUNING.sweep
    keep_succeeded: Annotated[Seconds, says("Seconds for which succeeded runs are kept.")] = _KEEP.succeeded
    keep_failed: Annotated[Seconds, says("Seconds for which failed and cancelled runs are kept.")] = _KEEP.failed
    keep_most: Annotated[int, says("Of each task, at most so many ended runs are kept.")] = _KEEP.most
    keep_least: Annotated[int, says("Of each task, so many ended runs are kept however old.")] = _KEEP.least
    log_level: Annotated[LogLevel, says("The least level that `rota worker` and `rota dev` log.")] = "info"
    log_format: Annotated[LogFormat, says("How they write it: lines of text, or a JSON object per line.")] = "text"
    patience: Annotated[Seconds, says("Seconds within which a submit reaches the store, or raises.")] = RETRY_WINDOW
    trace_store: Annotated[
        bool, says("With OpenTelemetry, also make spans of what a worker asks the store: `receive` and `settle`.")
    ] = False
    trace_create: Annotated[
        bool, says("With OpenTelemetry, also make a span for each run of a submit of several: `create TASK`.")
    ] = False
    debug: Annotated[bool, says("Show tracebacks on the command line.")] = False
    tasks: Annotated[dict[str, TaskOverride], says("What is changed of single tasks.")] = {}
    limits: Annotated[dict[str, int], says("The numbers of named limits: `[limits.gpu]` `total = 4`.")] = {}
    sources: Annotated[dict[Path, str], says("Where each value came from that is not a default.")] = {}

    def __post_init__(self) -> None:
        self._check_names()
        self._check_numbers()
        if self.rescue > self.lease:  # the engine of a simulation looks only when a worker has crashed
            raise InvalidOptions(f"{self._quote('rescue')} with {self._quote('lease')}: at most the lease")
        if self.keep_least > self.keep_most:
            raise InvalidOptions(
                f"{self._quote('keep_least')} with {self._quote('keep_most')}: least is more than most"
            )

    def __repr__(self) -> str:
        shown = {name: self.shown(name) for name in self.__struct_fields__ if name != "sources"}
        return f"Settings({', '.join(f'{name}={value!r}' for name, value in shown.items())})"

    def shown(self, name: str) -> object:
        """Return the value of a setting without its secrets. The path of a monitor's URL is one."""
        value = getattr(self, name)
        if name == "heartbeat_url" and value is not None:
            scheme, _, rest = str(value).partition("://")
            return f"{scheme}://{rest.partition('/')[0].rpartition('@')[2]}/***"
        return masked(self.url) if name == "url" else value

    @property
    def store_url(self) -> str:
        """The URL to connect to: `url`, in the namespace."""
        if self.namespace is None:
            return self.url
        return in_namespace(self.url, self.namespace, self._quote("namespace"))

    @property
    def tuning(self) -> Tuning:
        """The numbers that the engine runs by."""
        keep = Retention(
            succeeded=self.keep_succeeded, failed=self.keep_failed, most=self.keep_most, least=self.keep_least
        )
        names = [name for name in Tuning.__struct_fields__ if name != "retention"]
        return Tuning(**{name: getattr(self, name) for name in names}, retention=keep)

    def override(self, task: str) -> TaskOverride:
        """Return the override of a task. A file names the task exactly; a variable names it as `fold` writes it."""
        for name in (task, fold(task)):
            if name in self.tasks and (name == task or self.is_folded(name)):
                return self.tasks[name]
        return TaskOverride()

    def is_folded(self, name: str) -> bool:
        """Return whether only variables name this task, so that `name` stands for every task name that folds to it."""
        return all(source.startswith("ROTA_") for source in self.sources_of(name))

    def sources_of(self, task: str) -> list[str]:
        return sorted({source for path, source in self.sources.items() if path[:2] == ("tasks", task)})

    def source(self, *path: str) -> str:
        """Return `keyword`, the variable, the file, or `default`."""
        return self.sources.get(path, "default")

    def _quote(self, name: str) -> str:
        source = self.source(name)
        return f"{name}={getattr(self, name)!r}" + (f" ({source})" if source != "keyword" else "")

    def _check_names(self) -> None:
        try:
            find_zone(self.tz)
        except ValueError as error:
            raise InvalidOptions(f"{self._quote('tz')}: {error}") from None
        if not self.url.strip():
            raise InvalidOptions(
                f"{self._quote('url')} names no store; leave it out for SQLite beside the project file"
            )
        if not self.name or not self.name.isprintable() or len(self.name) > 100:
            raise InvalidOptions(f"{self._quote('name')}: 1 to 100 characters on one line")
        place = self.environment
        if place is not None and not (0 < len(place) <= 40 and place.isprintable()):
            raise InvalidOptions(f"{self._quote('environment')}: 1 to 40 characters on one line")

    def _check_numbers(self) -> None:
        try:
            check_tuning(self, self._quote)
        except ValueError as error:
            raise InvalidOptions(str(error)) from None
        if not 0.1 <= self.patience <= ID_MEMORY / 2:
            raise InvalidOptions(
                f"{self._quote('patience')}: from 0.1 to {ID_MEMORY / 2:g} seconds; the id of an ended run is known "
                f"for {ID_MEMORY:g}, and a submit that is sent again after that would make a second run"
            )
        if not 1 <= self.heartbeat_every <= FAR:
            raise InvalidOptions(f"{self._quote('heartbeat_every')}: from 1 second to ten years")
        for name in ("keep_succeeded", "keep_failed"):
            if not 0 <= getattr(self, name) <= FAR:
                raise InvalidOptions(f"{self._quote(name)}: from 0 seconds to ten years")
        for name in ("keep_most", "keep_least"):
            if getattr(self, name) < 0:
                raise InvalidOptions(f"{self._quote(name)}: a number of runs from 0")


def fold(task: str) -> str:
    """Return a task's name as a variable can spell it: lower-case, with `_` for every character but letters and
    digits."""
    return re.sub(r"[^a-z0-9_]", "_", task.lower())
