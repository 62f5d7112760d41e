"""Context: what a handler can read about its run, and what it can store with the run."""

from collections.abc import Callable, Mapping
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import msgspec

from rota.domain import codec
from rota.domain.arguments import encode_result
from rota.domain.kinds import is_number
from rota.domain.policy import FAR
from rota.domain.run import Note, Progress, Run, storable
from rota.domain.tail import LINE, Tail, packed
from rota.errors import NotRunning

if TYPE_CHECKING:
    from rota.engine.waiters import Waiters

MESSAGE_LIMIT = 500
WARNINGS_KEPT = 20

context_here: ContextVar["Context | None"] = ContextVar("rota context", default=None)
"""The context of the run whose handler is being called. Threads and the portal's loop inherit it."""


class Context:
    """Given to a handler whose first parameter is annotated `Context`; never passed at submit."""

    tail: Tail | None = None
    """What the handler logs, if its task has `logs=True`."""
    waiters: "Waiters | None" = None
    """The waiting handlers of the worker that calls this one; None outside of a worker."""
    _stopping = False
    _noticed = False
    _progress: Progress | None = None
    _saved: bytes | None = None
    _noted = 0
    _carried = 0
    _extended = 0.0

    def __init__(
        self,
        run: Run,
        resources: Any = None,
        changed: Callable[[], None] = lambda: None,
        period: str | None = None,
    ) -> None:
        """`changed` is called when the handler notes something. `period` is the run's period as the app writes it."""
        self.run = run
        self.period = run.origin.period if period is None else period
        """The day, hour, week or month that this run is for: by its usual name, or in the `format` of the app's
        `Period`. None if the run has no period."""
        self.resources = resources
        """What `Rota(resources=...)` opened in this worker; None in a child process, which shares nothing."""
        self._changed = changed
        self._warnings: list[str] = []

    @staticmethod
    def current() -> "Context":
        """Return the context of the run that this code works for, in a coroutine, a thread or a child process. Raises
        NotRunning outside of a handler."""
        found = context_here.get()
        if found is None:
            raise NotRunning(
                "no handler runs here: Context.current() works in the handler of a task and in what it calls; a thread "
                "of your own needs a copy of the handler's context (contextvars.copy_context, asyncio.to_thread)"
            )
        return found

    @property
    def fence(self) -> int:
        """A number that grows with every claim of this run: pass it to systems that can refuse an older fence."""
        return self.run.fence

    @property
    def attempt(self) -> int:
        """The number of this call: 1 for the first, one more after every failure or loss."""
        return self.run.failures + self.run.losses + 1

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers of this run (`using(headers=…)`). Runs that the handler submits get the same headers."""
        return self.run.headers

    @property
    def nominal(self) -> datetime | None:
        """The time of the tick that made this run, in UTC, however late the run starts. None if no schedule made it."""
        at = self.run.origin.nominal
        return None if at is None else datetime.fromtimestamp(at, UTC)

    @property
    def stopping(self) -> bool:
        """True once the run is cancelled or paused, or the worker stops.

        A handler in a thread or process reads this and returns early. Once it has read True, its run does not count as
        succeeded.
        """
        self._noticed = self._noticed or self._stopping
        return self._stopping

    def progress(self, share: float, message: str = "") -> None:
        """Note how much of the work is done, from 0 to 1. Others see it within a second."""
        if not 0 <= share <= 1:
            raise ValueError(f"progress({share!r}): a share from 0 to 1")
        self._progress = Progress(float(share), storable(message, MESSAGE_LIMIT))
        self._note()

    def checkpoint(self, value: Any) -> None:
        """Store `value`, from which the work can go on: the next call of this run finds it in `ctx.saved`."""
        saved = encode_result(value)
        if len(saved) > codec.RESULT_LIMIT:
            raise ValueError(f"a checkpoint of {len(saved):,} bytes is more than the {codec.RESULT_LIMIT:,} allowed")
        self._saved = saved
        self._note()

    @property
    def saved(self) -> Any:
        """The latest checkpoint as plain JSON values; None without a checkpoint."""
        latest = self.run.saved if self._saved is None else self._saved
        return None if latest is None else msgspec.json.decode(latest)

    def extend(self, seconds: float) -> None:
        """Give this call `seconds` more before its timeout stops it. Without a timeout, nothing changes. The next call
        of the run has the usual time."""
        if not is_number(seconds) or not 0 <= seconds <= FAR:
            raise ValueError(f"extend({seconds!r}): a number of seconds from 0")
        self._extended += seconds

    def warn(self, message: str) -> None:
        """Store a warning with this attempt; the run goes on."""
        if len(self._warnings) < WARNINGS_KEPT:
            self._warnings.append(storable(message, MESSAGE_LIMIT))

    # -- for the engine --------------------------------------------------------------------------------------------

    @property
    def noticed(self) -> bool:
        """Whether the handler has seen that it should stop."""
        return self._noticed

    @property
    def extended(self) -> float:
        """The seconds that the handler has added to its timeout."""
        return self._extended

    @property
    def warnings(self) -> tuple[str, ...]:
        return tuple(self._warnings)

    def log_line(self, line: str) -> None:
        """The handler has logged a line."""
        if self.tail is not None:
            self.tail.add(storable(line, LINE))

    @property
    def log(self) -> str:
        """The tail as it is stored with the attempt."""
        return "" if self.tail is None else packed(self.tail.text())

    def stop(self) -> None:
        self._stopping = True

    def note(self) -> Note | None:
        """Return all that the handler noted, for the ending."""
        if self._progress is None and self._saved is None:
            return None
        return Note(self._progress, self._saved)

    def fresh_note(self) -> tuple[Note, int] | None:
        """Return the note that no renewal has carried yet, and its number."""
        note = self.note() if self._noted > self._carried else None
        return None if note is None else (note, self._noted)

    def carried(self, number: int) -> None:
        """A renewal has carried the note of this number."""
        self._carried = max(self._carried, number)

    def _note(self) -> None:
        self._noted += 1
        self._changed()
