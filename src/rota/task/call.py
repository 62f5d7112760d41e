"""Call: one call of a task, encoded. Every run and every schedule of a task is made from a call."""

from collections.abc import Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from rota.domain import codec
from rota.domain.activity import Activity, touch_guards
from rota.domain.ended import with_callbacks
from rota.domain.fan import child_id
from rota.domain.guards import Guards
from rota.domain.headers import merged
from rota.domain.intake import Options, new_run
from rota.domain.once import Once, check_storable, once_in
from rota.domain.run import NewRun, Origin
from rota.domain.schedule import Schedule
from rota.domain.scheduling import Timed, new_schedule
from rota.domain.spec import NamedByCode, TaskSpec
from rota.domain.starts import at_start, is_at_start
from rota.domain.triggers import Trigger
from rota.engine.context import context_here
from rota.errors import InvalidArguments, InvalidOptions
from rota.task.ids import new_id, new_ids


class Call(Struct, frozen=True):
    """A task's spec, the encoded arguments and the options of one submit.

    The spec is all that a call knows of its task. So a process that has read the published spec makes the same run as
    a process that has the task's code. `once` is the one value that a spec cannot hold: a function that names periods.
    """

    spec: TaskSpec
    args: bytes
    options: Options = Options()
    once: Once | NamedByCode | None = None
    share: str | None = None
    """What the share of the task makes of the arguments."""

    def to_child(self, fan: str, index: int) -> NewRun:
        """Return the run of this call as a child of a fan. It has no guards: each item makes a run."""
        run = self.to_run(child_id(fan, index))
        return replace(run, guards=Guards(), unique_key=None, body=codec.amend(run.body, Origin(kind="fan", of=fan)))

    def to_run(self, id: str | None = None) -> NewRun:
        """Return a new run of this call, in no period; every `to_run` makes another run, if no `id` is given. In a
        handler, the new run gets the headers of the handler's run."""
        spec, options, here = self.spec, self.options, context_here.get()
        if here is not None and here.headers:
            options = replace(options, headers=merged(here.headers, options.headers))
        try:
            terms = spec.policy, options, spec.priority, spec.guards, spec.queue
            run = new_run(id or new_id(), spec.name, self.args, *terms, self.share)
            if spec.secrets:
                run = replace(run, body=codec.with_secrets(run.body, spec.secrets))
            on_end = options.callbacks(spec.on_end)
            return with_callbacks(run, on_end) if on_end else run
        except TypeError as error:
            raise InvalidArguments(str(error)) from None
        except ValueError as error:
            raise InvalidOptions(str(error)) from None

    def with_headers(self, inherited: Mapping[str, str]) -> "Call":
        """Return this call with `inherited` headers beside its own, which go first."""
        return replace(self, options=replace(self.options, headers=merged(inherited, self.options.headers)))

    def to_run_at(self, now: float) -> NewRun:
        """Return a new run of this call; if the task has `once=`, in the period that `now`, the store's time, belongs
        to."""
        run = self.to_run()
        if self.once is None:
            return run
        try:
            if self.once == "code":
                raise ValueError("only the task's code can name the period: submit from a process that has the code")
            return once_in(run, self.once, now, self.spec.defaults)
        except (TypeError, ValueError) as error:
            raise InvalidOptions(f"{self.spec.name}: once: {error}") from None

    def to_touch(self) -> NewRun:
        """Return the run that a touch asks for. Its options come from the task's activity, so only arguments can be
        wrong."""
        try:
            return self.to_run()
        except InvalidOptions as error:
            raise InvalidArguments(f"{self.spec.name}: {error}") from None

    def to_schedule(
        self, id: str, trigger: Trigger, timed: Timed, owner: str = "", version: str | None = None
    ) -> Schedule:
        """Return a schedule that makes this call, without its first tick: the store's clock decides when that is."""
        spec = self.spec
        try:
            if self.once == "code":
                raise ValueError("only the task's code can name the period of a run; schedules fire without the code")
            if self.once is not None:
                timed = replace(timed, once=check_storable(self.once))
            terms = spec.policy, self.options, spec.priority, spec.guards
            made = new_schedule(id, trigger, timed, spec.name, self.args, *terms, owner, spec.queue, self.share)
            if is_at_start(made):
                made = at_start(made, timed, version)
            if spec.secrets:
                made = replace(made, body=codec.with_secrets(made.body.encode(), spec.secrets).decode())
            if on_end := self.options.callbacks(spec.on_end):
                return replace(made, body=codec.with_on_end(made.body.encode(), on_end).decode())
            return made
        except (TypeError, ValueError) as error:
            raise InvalidOptions(f"schedule {id}: {error}") from None


def runs_of(calls: Sequence[Call]) -> list[NewRun]:
    """Return a new run of each call, in no period. A call with the task and the options of the call before it makes
    the same run with other arguments: nothing else is checked and encoded again (1.0 to 0.5 us a run)."""
    made: list[NewRun] = []
    last: Call | None = None
    around: tuple[bytes, bytes] | None = None
    for call, id in zip(calls, new_ids(len(calls)), strict=True):
        like = last is not None and call.spec is last.spec and call.options is last.options
        if like and around is not None and call.share is None and len(call.args) <= codec.ARGS_LIMIT:
            made.append(replace(made[-1], id=id, body=around[0] + call.args + around[1]))
            continue
        run = call.to_run(id)
        plain = run.unique_key is None and run.fingerprint is None and run.share is None and not run.callbacks
        last, around = call, codec.around_args(run.body, call.args) if plain else None
        made.append(run)
    return made


def touch_terms(spec: TaskSpec, activity: Activity) -> tuple[TaskSpec, Options]:
    """Return the spec and the options of a touch: the activity's key, guards, delay and expiry in place of the task's
    own."""
    key = spec.key if activity.key is None else activity.key
    options = Options(delay=activity.after, expires=activity.expires, origin="touch")
    return replace(spec, key=key, guards=touch_guards(activity, spec.guards)), options
