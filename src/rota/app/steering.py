"""Steering: the verbs of an app that change what may start, in all processes."""

from datetime import datetime

from rota.app.core import Core
from rota.client.overrides import Value, override_task, spec_of
from rota.client.pauses import end_of, freeze, pause_task
from rota.domain.intake import Span, check_name
from rota.domain.run import State
from rota.errors import InvalidOptions
from rota.store import Command, RunQuery, Scope
from rota.task import definition_of


class Steering:
    """A part of `Rota`."""

    _core: Core

    async def clear(self, task: str) -> int:
        """Cancel all waiting runs of a task and return their number. Running runs continue."""
        total = 0
        waiting = await self._waiting(task) if self._core.hooks.wanted("cancelled") else []
        names = self._all_names(task)
        while ended := sum((await self._core.client.control(Command.DROP, names, of=Scope.TASKS)).items):
            total += ended
        await self._core.client.ended_here(waiting)
        return total

    async def _waiting(self, task: str) -> list[str]:
        states = (State.QUEUED, State.PAUSED)
        queries = [RunQuery(task=name, state=states, limit=1000) for name in self._all_names(task)]
        return [run.id for query in queries async for run in self._core.client.all_runs(query)]

    async def pause(
        self, task: str, note: str | None = None, *, key: str | None = None, until: datetime | Span | None = None
    ) -> bool:
        """Start no more runs of a task in any process, until `resume` or `until`: an instant, or seconds from now by
        the store's clock. Submits still make runs.

        With `key`, only the runs of this key do not start, and 1,000 keys of a task at most can be paused. Pause again
        to move the end.
        """
        end = await end_of(self._core.client, until)
        return await pause_task(self._core.client, Command.PAUSE, self._all_names(task), key, note, until=end)

    async def resume(self, task: str, note: str | None = None, *, key: str | None = None) -> bool:
        """Let runs of a paused task, or of a paused `key` of it, start again; returns whether it was paused."""
        return await pause_task(self._core.client, Command.RESUME, self._all_names(task), key, note)

    async def override(self, task: str, note: str | None = None, **values: Value) -> bool:
        """Let what an operator says win over the code of a task, in all processes, until it is taken away (None):
        `enabled`, `limit`, `rate`, `retry` or `timeout`. Returns False if somebody else changed it at the same time."""
        known = self._core.registry.find(task)
        own = None if known is None else definition_of(known).spec
        spec = await spec_of(self._core.client, self._all_names(task)[0], own)
        return await override_task(self._core.client, spec, values, note) is not None

    async def freeze(self, until: datetime | Span | None = None, note: str | None = None) -> bool:
        """Start no more runs of any task in this namespace, until `thaw` or `until`: an instant, or seconds from now by
        the store's clock. Running runs go on; submits and schedules still make runs. Returns whether that changed
        anything."""
        return await freeze(self._core.client, until, note)

    async def thaw(self) -> bool:
        """Let runs start again after a `freeze`; returns whether the namespace was frozen."""
        return (await self._core.client.freeze(False)).items[0]

    def _all_names(self, task: str) -> list[str]:
        known = self._core.registry.find(task)
        if known is not None:
            return [known.name, *known.aliases]
        try:
            return [check_name(task)]
        except ValueError as error:
            raise InvalidOptions(str(error)) from None
