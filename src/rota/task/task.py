"""Task: a named function and its policies. Calling it calls the function; submitting it makes a run."""

import inspect
import logging
from collections.abc import Callable
from datetime import datetime
from typing import Any, Generic, ParamSpec, TypeVar

from msgspec import Struct
from msgspec.structs import asdict, replace

from rota.client.client import Client
from rota.client.handle import RunHandle, accept
from rota.client.portal import Portal
from rota.domain.activity import Activity
from rota.domain.arguments import Signature
from rota.domain.decision import Decision, Reason
from rota.domain.guards import Guards, Unique
from rota.domain.intake import Options, Span, Timed, check_priority, new_run, new_schedule, timeout_of
from rota.domain.keys import KeyTemplate
from rota.domain.once import check_storable, memory_of, once_in
from rota.domain.period import Period
from rota.domain.policy import Policy
from rota.domain.results import FailOn, chosen
from rota.domain.run import NewRun
from rota.domain.schedule import Schedule
from rota.domain.spec import TaskSpec
from rota.domain.triggers import Trigger
from rota.domain.user_key import UserKey
from rota.engine.handler import ExecutorName, Handler
from rota.errors import InvalidArguments, InvalidOptions, StoreError
from rota.store import SubmitsWithin
from rota.task.chain import Chain, Link
from rota.task.ids import new_id
from rota.task.kinds import check_using
from rota.task.options import TaskOptions, check_definition, default_executor, key_of, takes_context, trigger_of

log = logging.getLogger("rota")

C = ParamSpec("C")
"""The parameters as called, with `ctx` if the function takes one."""
P = ParamSpec("P")
"""The parameters as submitted, without it."""
T_co = TypeVar("T_co", covariant=True)
"""What a call returns: a coroutine for async functions."""
R_co = TypeVar("R_co", covariant=True)
"""What a run results in."""


Wait = float | bool | None
"""Seconds to wait for room; None for the usual 30, False for not at all."""
WAIT = 30.0
DESCRIPTION_LIMIT = 200


class Bound(Struct, Generic[R_co], frozen=True):
    """A task with its arguments, checked and encoded: ready to be submitted, alone or with others."""

    task: "Task[..., ..., Any, R_co]"
    args: bytes
    options: Options = Options()
    guards: Guards | None = None

    def to_run(self) -> NewRun:
        """A new run for this call; every call of this method makes another."""
        try:
            return new_run(
                id=new_id(),
                task=self.task.name,
                args=self.args,
                policy=self.task.policy,
                options=self.options,
                priority=self.task.priority,
                guards=self.task.guards if self.guards is None else self.guards,
            )
        except TypeError as error:
            raise InvalidArguments(str(error)) from None
        except ValueError as error:
            raise InvalidOptions(str(error)) from None

    def to_run_at(self, now: float) -> NewRun:
        """The same at this time of the store, where the task is done once per period."""
        run = self.to_run()
        if self.task.once is None:
            return run
        try:
            return once_in(run, self.task.once, now, self.task.signature.defaults())
        except (TypeError, ValueError) as error:
            raise InvalidOptions(f"{self.task.name}: once: {error}") from None

    def __rshift__(self, following: Link) -> Chain:
        """`a.bind(1) >> b >> [c, d]`: each starts when the one before has succeeded."""
        return Chain.of(self).then(following)

    def to_schedule(self, id: str, trigger: Trigger, timed: Timed, owner: str = "") -> Schedule:
        """A schedule that makes this call, without its first tick: that is for the store's clock to say."""
        task = self.task
        try:
            if task.once is not None:
                timed = replace(timed, once=check_storable(task.once))
            return new_schedule(
                id, trigger, timed, task.name, self.args, task.policy, self.options, task.priority, task.guards, owner
            )
        except (TypeError, ValueError) as error:
            raise InvalidOptions(f"schedule {id}: {error}") from None


class Using(Generic[P, R_co]):
    """A task with options for the next submits: `resize.using(delay=60).submit("a.png")`."""

    def __init__(
        self, task: "Task[..., P, Any, R_co]", options: Options, wait: Wait, connection: object | None = None
    ) -> None:
        self._task = task
        self._options = options
        self._wait = wait
        self._connection = connection

    async def submit(self, *args: P.args, **kwargs: P.kwargs) -> RunHandle[R_co]:
        """Durable when this returns; with `connection`, once its transaction has committed."""
        bound = self.bind(*args, **kwargs)
        if self._connection is not None:
            return await self._task.put_within(bound, self._connection)
        return await self._task.put(bound, self._wait)

    def submit_sync(self, *args: P.args, **kwargs: P.kwargs) -> RunHandle[R_co]:
        """The same from synchronous code; raises where an event loop runs, unless it goes through a `connection`."""
        bound = self.bind(*args, **kwargs)
        if self._connection is not None:
            return self._task.put_within_sync(bound, self._connection)
        return self._task.portal().call(lambda: self._task.put(bound, self._wait))

    def bind(self, *args: P.args, **kwargs: P.kwargs) -> Bound[R_co]:
        return self._task.bound(args, kwargs, self._options)


class Task(Generic[C, P, T_co, R_co]):
    """Made by `@app.task`; still callable like its function, which is `task.fn`."""

    def __init__(
        self,
        fn: Callable[C, T_co],
        options: TaskOptions,
        client: Callable[[], Client],
        portal: Callable[[], Portal],
        tz: str = "UTC",
        fail_on: FailOn | None = None,
    ) -> None:
        """`fail_on` is the app's, for a task that has none of its own."""
        self.fn = fn
        self.name = str(options.name or getattr(fn, "__name__", ""))
        check_definition(fn, self.name)
        self.description = options.description or inspect.getdoc(fn) or ""
        self.retry = options.retry
        try:
            self.takes_context = takes_context(fn)
            self.signature = Signature(fn, skip=1 if self.takes_context else 0)
            self.policy = Policy(options.retry, timeout_of(options.timeout), options.lost, options.max_losses).frozen()
            self.priority = check_priority(options.priority)
            self.guards = options.guards()
            self._key = key_of(options.key, self.signature)
            self.activity = options.activity
            self._activity_key = self._key
            if options.activity is not None and options.activity.key is not None:
                self._activity_key = key_of(options.activity.key, self.signature)
            self.trigger = trigger_of(options.schedule)
            self.once = options.once.in_zone(tz) if isinstance(options.once, Period) else options.once
            options.check(fn)
        except (TypeError, ValueError) as error:
            raise InvalidOptions(f"task {self.name}: {error}") from None
        self.executor: ExecutorName = options.executor or default_executor(fn)
        self.aliases = options.aliases
        self.enabled = options.enabled
        self.fail_on = options.fail_on
        self._fail_on_of_app = fail_on
        self.expect = options.expect
        self.mark_memory = 0.0 if self.once is None else memory_of(self.once)
        """Seconds beyond the usual for which its marks are read: by its `once`, or by a flow that it is a step of."""
        self._options = options
        self.client = client
        self.portal = portal
        self.__name__ = self.name
        self.__doc__ = fn.__doc__
        self.__wrapped__ = fn

    def __repr__(self) -> str:
        return f"<Task {self.name}{self.signature.parameters}>"

    def __call__(self, *args: C.args, **kwargs: C.kwargs) -> T_co:
        return self.fn(*args, **kwargs)

    async def submit(self, *args: P.args, **kwargs: P.kwargs) -> RunHandle[R_co]:
        """Make a run of this task; durable when this returns. Wrong arguments raise here, not in the worker."""
        return await self.put(self.bound(args, kwargs))

    def submit_sync(self, *args: P.args, **kwargs: P.kwargs) -> RunHandle[R_co]:
        """The same from synchronous code; raises where an event loop runs."""
        bound = self.bound(args, kwargs)
        return self.portal().call(lambda: self.put(bound))

    def __rshift__(self, following: Link) -> Chain:
        """`a >> b`: a chain of calls, the first one without arguments."""
        return Chain.of(self).then(following)

    async def touch(self, *args: P.args, **kwargs: P.kwargs) -> Decision:
        """Somebody was active: make, move or leave the run of their key, as the task's `activity` has it.

        Truthy if there is a run for it now, else `reason` says why not. Costs one round trip and never waits: a
        store that does not answer is a no (`unavailable`). Wrong arguments still raise.
        """
        if self.activity is None:
            return Decision("", Reason.NO_ACTIVITY)
        run = self.touched(self.activity, args, kwargs)
        try:
            return await self.client().touch(run)
        except StoreError as error:
            log.warning("a touch of %s is lost, the store is away: %s", self.name, error)
            return Decision(run.id, Reason.UNAVAILABLE)

    def touched(self, activity: Activity, args: tuple[Any, ...], kwargs: dict[str, Any]) -> NewRun:
        options = Options(delay=activity.after, expires=activity.expires, origin="touch")
        bound = self.bound(args, kwargs, options, self._activity_key)
        try:
            return replace(bound, guards=activity.guards(self.guards)).to_run()
        except InvalidOptions as error:
            raise InvalidArguments(f"{self.name}: {error}") from None

    def bind(self, *args: P.args, **kwargs: P.kwargs) -> Bound[R_co]:
        """The task with these arguments, for `app.submit_many`."""
        return self.bound(args, kwargs)

    def using(
        self,
        *,
        delay: Span | None = None,
        at: datetime | None = None,
        expires: Span | datetime | None = None,
        priority: int | None = None,
        key: str | None = None,
        unique: Unique | None = None,
        wait: Wait = None,
        connection: object | None = None,
    ) -> Using[P, R_co]:
        """Options for the submits that follow.

        `delay` (seconds) or `at` (an aware datetime) says when the run is due. With `expires`, a run that has not
        started so many seconds after it was due, or by that instant, never starts. Higher `priority` goes first.
        `key` says what the run is about, `unique` what it may not stand beside. While `max_pending` is reached, a
        submit waits up to `wait` seconds (30; False: not at all) for room. With `connection`, your own to the database
        of a PostgreSQL store, the run is put in the transaction that is open there: rolled back, it never was.
        """
        options = Options(delay=delay, at=at, expires=expires, priority=priority, key=key, unique=unique)
        check_using(self.name, {**asdict(options), "wait": wait})
        return Using(self, options, wait, connection)

    def handle(self, id: str) -> RunHandle[R_co]:
        """The handle of a run of this task that was submitted elsewhere."""
        return RunHandle(self.client(), id, self.signature.decode_result)

    async def put(self, bound: Bound[R_co], wait: Wait = None) -> RunHandle[R_co]:
        patience = WAIT if wait is None or wait is True else float(wait)
        run = await self.made(bound)
        return self.handle_for(accept(await self.client().submit(run, patience)))

    async def made(self, bound: Bound[R_co]) -> NewRun:
        """The run of a call; which period it is for, the store's clock says."""
        return bound.to_run() if self.once is None else bound.to_run_at(await self.client().now())

    async def put_within(self, bound: Bound[R_co], connection: object) -> RunHandle[R_co]:
        """In the transaction that is open on the caller's connection."""
        await self.client().session()  # whoever submits first makes the schema
        run = await self.made(bound)
        refusal = self.client().refusal(run)
        return self.handle_for(accept(await self._within().put_within(connection, run) if refusal is None else refusal))

    def put_within_sync(self, bound: Bound[R_co], connection: object) -> RunHandle[R_co]:
        run = bound.to_run() if self.once is None else self.portal().call(lambda: self.made(bound))
        refusal = self.client().refusal(run)
        return self.handle_for(accept(self._within().put_within_sync(connection, run) if refusal is None else refusal))

    def _within(self) -> SubmitsWithin:
        backend = self.client().backend
        if not isinstance(backend, SubmitsWithin):
            raise InvalidOptions(f"using(connection=...) needs a PostgreSQL store, and this app's is {backend.url}")
        return backend

    def handle_for(self, decision: Decision) -> RunHandle[R_co]:
        return RunHandle(self.client(), decision.run, self.signature.decode_result, decision)

    def encode(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bytes:
        try:
            return self.signature.encode(args, kwargs)
        except (TypeError, ValueError) as error:
            raise InvalidArguments(str(error)) from None

    def bound(
        self,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        options: Options = Options(),  # noqa: B008
        key: KeyTemplate | UserKey | None = None,
    ) -> Bound[R_co]:
        """Checked, encoded, and with the key that its arguments make."""
        encoded = self.encode(args, kwargs)
        key = key or self._key
        if key is not None and options.key is None:
            try:
                options = replace(options, key=key.fill(self.signature.all_arguments(args, kwargs)))
            except ValueError as error:
                raise InvalidArguments(f"{self.name}: {error}") from None
        return Bound(self, encoded, options)

    def schedule(self, tz: str, owner: str) -> Schedule | None:
        """The schedule that the code declares for this task, if it does; its id is the task's name."""
        if self.trigger is None:
            return None
        try:
            call = self.bound((), {})
        except InvalidArguments as error:
            raise InvalidOptions(
                f"task {self.name}: its schedule calls it without arguments ({error}); give them defaults, "
                "or use app.schedules.put with a bound call"
            ) from None
        return call.to_schedule(self.name, self.trigger.in_zone(tz), self._options.timed(), owner)

    def spec(self) -> TaskSpec:
        """What is published of this task."""
        return TaskSpec(
            self.name,
            enabled=self.enabled,
            limit=self._options.limit,
            rate=self._options.rate,
            description=self.description.split("\n")[0][:DESCRIPTION_LIMIT],
            executor=self.executor,
            timeout=self.policy.timeout,
            retries=self.retry.limit,
            parameters=tuple(self.signature.parameters.parameters),
            defaults=self.signature.defaults(),
            open=self.signature.open,
            key=self._options.key,
            priority=self.priority,
            policy=self.policy,
            guards=self.guards,
            activity=self.activity,
            once=self.once.stored() if isinstance(self.once, Period) else self.once and "code",
            memory=self.mark_memory,
        )

    @property
    def reader(self) -> FailOn | None:
        """What judges the results of its runs, unless a flow does."""
        return chosen(self.fail_on, self._fail_on_of_app)

    def handler(self) -> Handler:
        return Handler(
            name=self.name,
            fn=self.fn,
            signature=self.signature,
            executor=self.executor,
            takes_context=self.takes_context,
            retry=self.retry,
            fail_on=self.reader,
        )
