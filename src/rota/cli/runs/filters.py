"""The filter of `rota runs`: the same conditions as those of `app.runs`, as options."""

import re
from dataclasses import dataclass, fields
from typing import Annotated
from zoneinfo import ZoneInfo

from cyclopts import Parameter

from rota.cli.flows.find import find_flow, opened_app
from rota.cli.options.parameters import Flag
from rota.cli.options.target import Target
from rota.cli.options.times import read_instant, seconds_of
from rota.client.client import Client
from rota.domain.flow import group_of
from rota.domain.run import State
from rota.errors import InvalidOptions
from rota.store import Instant, RunQuery

WHEN = "90s, 5m, 2h or 1d ago, or an instant as 2026-11-15T09:00Z"


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Filter:
    """Which runs. A test compares the fields with those of RunQuery."""

    state: Annotated[tuple[State, ...], Flag, Parameter(help="Only in this state; may be repeated.")] = ()
    task: Annotated[tuple[str, ...], Flag, Parameter(help="Only of this task; may be repeated.")] = ()
    key: Annotated[str | None, Parameter(help="Only about this key.")] = None
    queue: Annotated[tuple[str, ...], Flag, Parameter(help="Only of this queue; may be repeated.")] = ()
    group: Annotated[str | None, Parameter(help="Only of this group, such as race_day@2026-11-15.")] = None
    schedule: Annotated[str | None, Parameter(help="Only those that this schedule made.")] = None
    flow: Annotated[str | None, Parameter(help="Only of this flow, in its period of now.")] = None
    period: Annotated[str | None, Parameter(help="Only of this period; with --flow, of the flow in it.")] = None
    origin: Annotated[str | None, Parameter(help="Only made so: submit, touch, retry, schedule, run_now …")] = None
    worker: Annotated[str | None, Parameter(help="Only those that this worker has or had.")] = None
    error: Annotated[str | None, Parameter(help="Only with an error of this type, as ValueError.")] = None
    reason: Annotated[str | None, Parameter(help="Only those that ended for this reason, as timed_out.")] = None
    retry_of: Annotated[str | None, Parameter(help="Only the one that repeats this run.")] = None
    since: Annotated[str | None, Parameter(help=f"Only since: {WHEN}.")] = None
    until: Annotated[str | None, Parameter(help=f"Only before: {WHEN}.")] = None
    by: Annotated[Instant, Parameter(help="What --since and --until are about.")] = "created"
    q: Annotated[str | None, Parameter(help="Only with this text in id, key, task, error or arguments.")] = None
    order: Annotated[
        Instant, Parameter(help="created: newest first; finished: last ended first; due: first due first.")
    ] = "created"

    def given(self) -> list[str]:
        """The conditions that were given, by their names."""
        return [field.name for field in fields(self) if getattr(self, field.name) != field.default]

    async def query(self, client: Client, target: Target) -> RunQuery:
        """Return the query. `2h` is 2 hours ago by the store's clock; without --period, the code of the flow names the
        period."""
        group, period = self.group, self.period
        if self.flow is not None:
            group, period = await self._group_of(self.flow, target), None
        return RunQuery(
            state=self.state,
            task=self.task,
            key=self.key,
            queue=self.queue,
            group=group,
            schedule=self.schedule,
            period=period,
            origin=self.origin,
            worker=self.worker,
            error=self.error,
            reason=self.reason,
            retry_of=self.retry_of,
            since=await instant_of(client, self.since, "--since", target),
            until=await instant_of(client, self.until, "--until", target),
            by=self.by,
            q=self.q,
            order=self.order,
        )

    async def _group_of(self, flow: str, target: Target) -> str:
        if self.group is not None:
            raise InvalidOptions("--flow and --group both name a group; give one")
        if target.reference is None:
            if self.period is None:
                raise InvalidOptions(
                    f"which --period of {flow}? Without its code (-A) nothing says which is the one of now"
                )
            return group_of(flow, self.period)
        async with opened_app(target) as (app, _):
            return group_of(flow, await find_flow(app, flow).period(self.period))

    @property
    def needs_code(self) -> bool:
        """Whether the app is loaded, if there is one, although the store is named."""
        return bool(self.task) or self.flow is not None


EVERY = Filter()


async def instant_of(client: Client, text: str | None, option: str, target: Target) -> float | None:
    """Read an instant; one without a zone is in the default time zone."""
    if text is None:
        return None
    if re.fullmatch(r"[\d.]+\s*[a-z]*", text):
        return (await client.depths()).now - (seconds_of(text, option) or 0.0)
    return read_instant(text, option, ZoneInfo(target.tz())).timestamp()
