"""Definition: a task as its code defines it, with every option checked. For rota's own packages, not for users."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import TYPE_CHECKING, Any, cast, get_args

from msgspec.structs import replace

from rota.client.handle import RunHandle
from rota.domain.arguments import Signature, type_hints
from rota.domain.decision import Decision
from rota.domain.depends import check_executor, dependencies_of, hidden_parameters
from rota.domain.intake import Options, check_name, check_priority, retention_of, timeout_of
from rota.domain.keys import KeyTemplate, check_queue, parameters_of
from rota.domain.once import Once, memory_of
from rota.domain.period import Period
from rota.domain.policy import Policy, Retry, Share, TraceMode
from rota.domain.results import FailOn, chosen
from rota.domain.run import DEFAULT_QUEUE, Callback, State
from rota.domain.schedule import Schedule
from rota.domain.secrets import secret_names
from rota.domain.spec import TaskSpec
from rota.domain.triggers import Trigger
from rota.domain.user_key import UserKey
from rota.engine.context import Context
from rota.engine.fans import Spread, spread_here
from rota.engine.handler import ExecutorName, Handler
from rota.engine.middleware import Middleware, check_middleware
from rota.errors import InvalidArguments, InvalidOptions
from rota.task.call import Call, touch_terms
from rota.task.options import TaskOptions, check_together, guards_of, limits_of, timed_by
from rota.task.submitter import Submitter

if TYPE_CHECKING:
    from rota.task.task import Bound, Task

DESCRIPTION_LIMIT = 200
SCHEDULES_LIMIT = 100
POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def definition_of(task: "Task[..., ..., Any, Any]") -> "Definition":
    """Return the definition of a task. Users have no use for it, so `Task` shows it to no one but rota's own
    packages."""
    return task._definition  # pyright: ignore[reportPrivateUsage]


def call_of(bound: "Bound[Any]") -> Call:
    """Return the call that a bound task stands for, for the packages that make runs and schedules of it."""
    return bound._call  # pyright: ignore[reportPrivateUsage]


class Definition:
    """Everything that follows from a function and its options. `spec` is published; the rest needs the code."""

    def __init__(
        self,
        fn: Callable[..., Any],
        options: TaskOptions,
        submitter: Submitter,
        tz: str = "UTC",
        fail_on: FailOn | None = None,
        middleware: tuple[Middleware, ...] = (),
        around: Sequence[Callable[..., Any]] = (),
    ) -> None:
        """`submitter`, `tz`, `fail_on` and `middleware` are the app's; `tz` and `fail_on` are for a task that does not
        say otherwise."""
        self.fn = fn
        self.submitter = submitter
        self.around = around
        """Dependencies of every handler of the app; the app may still get some."""
        self.name = str(options.get("name") or getattr(fn, "__name__", ""))
        _check_function(fn, self.name)
        self.description = options.get("description") or inspect.getdoc(fn) or ""
        self.aliases = tuple(options.get("aliases", ()))
        self.retry = options.get("retry", Retry())
        self.activity = options.get("activity")
        self.own_fail_on = options.get("fail_on")
        self.fail_on = chosen(self.own_fail_on, fail_on)
        """What judges the results of the task's runs, unless a flow does."""
        self.expect = options.get("expect")
        self.logs = options.get("logs", False)
        self.trace: TraceMode = options.get("trace", "link")
        self.timed = timed_by(options)
        on_loop = inspect.iscoroutinefunction(fn) or inspect.isasyncgenfunction(fn)
        default: ExecutorName = "loop" if on_loop else "thread"
        self.executor: ExecutorName = options.get("executor") or default
        try:
            self.takes_context = takes_context(fn)
            self.signature = Signature(fn, 1 if self.takes_context else 0, hidden_parameters(fn))
            self.dependencies = dependencies_of(fn, Context, self.signature.names)
            if self.dependencies is not None:
                check_executor(self.dependencies, self.executor, on_loop)
            self.once: Once | None = _in_zone(options.get("once"), tz)
            self.spec = self._spec(options)
            self._key = _key_of(options.get("key"), self.signature)
            self._share = _share_template(self.spec.share, self.signature)
            self._check_secrets()
            own_key = None if self.activity is None else self.activity.key
            self._touch_key = self._key if own_key is None else _key_of(own_key, self.signature)
            self.triggers = triggers_of(self.name, options.get("schedule"))
            check_together(options, fn)
            self.middleware = (*middleware, *check_middleware(options.get("middleware", ())))
        except (TypeError, ValueError) as error:
            raise InvalidOptions(f"task {self.name}: {error}") from None

    def _spec(self, options: TaskOptions) -> TaskSpec:
        policy = Policy(
            retry=self.retry,
            timeout=timeout_of(options.get("timeout")),
            lost=options.get("lost", "retry"),
            max_losses=options.get("max_losses", 5),
        )
        limit, named = limits_of(options)
        return TaskSpec(
            self.name,
            enabled=options.get("enabled", True),
            limit=limit,
            limits=named,
            rate=options.get("rate"),
            description=self.description.split("\n")[0][:DESCRIPTION_LIMIT],
            executor=self.executor,
            parameters=tuple(self.signature.parameters.parameters),
            defaults=self.signature.defaults(),
            open=self.signature.open,
            key=options.get("key"),
            priority=check_priority(options.get("priority", 0)),
            queue=check_queue(options.get("queue", DEFAULT_QUEUE)),
            share=_share_of(options.get("share")),
            policy=policy.frozen(),
            guards=guards_of(options),
            activity=self.activity,
            once=self.once.stored() if isinstance(self.once, Period) else self.once and "code",
            memory=0.0 if self.once is None else memory_of(self.once),
            keep=retention_of(options.get("keep")),
            secrets=secret_names(self.signature.all_hints),
            on_end=tuple(
                callback_of(state, option, value)
                for option, state in CALLBACKS.items()
                if (value := options.get(option)) is not None
            ),
        )

    def _check_secrets(self) -> None:
        """Raise ValueError if a key or a share would show a secret."""
        spec = self.spec
        keys = spec.key, None if self.activity is None else self.activity.key, spec.share and spec.share.template
        for key in filter(None, keys):
            named = parameters_of(key) if isinstance(key, str) else frozenset[str]()
            if shown := sorted(named & set(spec.secrets)):
                raise ValueError(f"{key!r} would show the secret {shown[0]}: keys and shares are seen by everybody")

    def keep_marks(self, seconds: float) -> None:
        """Keep marks of the task for `seconds` beyond the usual, or longer: a flow that the task is a step of reads
        them."""
        self.spec = replace(self.spec, memory=max(self.spec.memory, seconds))

    def encode(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bytes:
        """Return the arguments as JSON; raises InvalidArguments if the function cannot be called with them."""
        try:
            return self.signature.encode(args, kwargs)
        except (TypeError, ValueError) as error:
            raise InvalidArguments(str(error)) from None

    def call(self, args: tuple[Any, ...], kwargs: dict[str, Any], options: Options = Options()) -> Call:  # noqa: B008
        """Return a call with these arguments, which are checked here. Without `options.key`, the arguments make the
        key."""
        encoded = self.encode(args, kwargs)  # first: it says what is wrong with the arguments
        if self._key is None and self._share is None:
            return Call(self.spec, encoded, options, self.once)
        keyed = self._keyed(self._key, args, kwargs, options)
        return Call(self.spec, encoded, keyed, self.once, self._shared(args, kwargs))

    def partial_call(self, given: dict[str, Any], options: Options = Options()) -> Call:  # noqa: B008
        """Return a call that has some of its arguments; a flow adds the others before the run starts."""
        try:
            return Call(self.spec, self.signature.encode_some(given), options)
        except (TypeError, ValueError) as error:
            raise InvalidArguments(str(error)) from None

    def touch_call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call | None:
        """Return the call that a touch with these arguments makes; None if the task has no activity."""
        if self.activity is None:
            return None
        spec, options = touch_terms(self.spec, self.activity)
        encoded = self.encode(args, kwargs)
        keyed = self._keyed(self._touch_key, args, kwargs, options)
        return Call(spec, encoded, keyed, share=self._shared(args, kwargs))

    def _keyed(
        self, key: KeyTemplate | UserKey | None, args: tuple[Any, ...], kwargs: dict[str, Any], options: Options
    ) -> Options:
        if key is None or options.key is not None:
            return options
        try:
            return replace(options, key=key.fill(self.signature.all_arguments(args, kwargs)))
        except ValueError as error:
            raise InvalidArguments(f"{self.name}: {error}") from None

    def _shared(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str | None:
        if self._share is None:
            return None
        try:
            return self._share.fill(self.signature.all_arguments(args, kwargs))
        except ValueError as error:
            raise InvalidArguments(f"{self.name}: {error}") from None

    def handle(self, decision: Decision) -> RunHandle[Any]:
        """Return the handle of the run that a submit of this task made or joined."""
        return RunHandle(self.submitter.client(), decision.run, self.signature.decode_result, decision)

    def schedules(self, tz: str, owner: str, version: str | None = None) -> list[Schedule]:
        """Return the schedules that the code declares for the task. The id of the first one is the task's name."""
        if not self.triggers:
            return []
        try:
            call = self.call((), {})
        except InvalidArguments as error:
            raise InvalidOptions(
                f"task {self.name}: its schedule calls it without arguments ({error}); give them defaults, "
                "or use app.schedules.put with a bound call"
            ) from None
        return [
            call.to_schedule(id, trigger.in_zone(tz), self.timed, owner, version)
            for id, trigger in self.triggers.items()
        ]

    def handler(self) -> Handler:
        """Return what the engine needs in order to call the task."""
        dependencies = self.dependencies
        if self.around:
            dependencies = dependencies_of(self.fn, Context, self.signature.names, self.around)
        return Handler(
            name=self.name,
            fn=listing(self.fn),
            yields=inspect.isgeneratorfunction(self.fn) or inspect.isasyncgenfunction(self.fn),
            signature=self.signature,
            executor=self.executor,
            takes_context=self.takes_context,
            retry=self.retry,
            middleware=self.middleware,
            logs=self.logs,
            trace=self.trace,
            dependencies=dependencies,
            fail_on=self.fail_on,
        )


def listing(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Return `fn`; a function that yields as one that returns the list of what it yields. If its run makes children of
    its items, they are put while it yields, and it returns the `Spread` that has the last of them."""
    if inspect.isgeneratorfunction(fn):

        @wraps(fn)
        def listed(*args: Any, **kwargs: Any) -> list[Any] | Spread:
            if (spread := spread_here.get()) is None:
                return list(fn(*args, **kwargs))
            for item in fn(*args, **kwargs):
                if spread.take(item):
                    spread.put_sync()
            return spread

        return listed
    if inspect.isasyncgenfunction(fn):

        @wraps(fn)
        async def listed_async(*args: Any, **kwargs: Any) -> list[Any] | Spread:
            if (spread := spread_here.get()) is None:
                return [item async for item in fn(*args, **kwargs)]
            async for item in fn(*args, **kwargs):
                if spread.take(item):
                    await spread.put()
            return spread

        return listed_async
    return fn


CALLBACKS = {"on_success": State.SUCCEEDED, "on_failure": State.FAILED, "on_cancel": State.CANCELLED}


def callback_of(state: State, option: str, task: object) -> Callback:
    """Return the callback that calls `task`, a task of any app or the name of one, when a run ends in `state`."""
    if isinstance(task, str):
        return Callback(state, check_name(task))
    definition = getattr(task, "_definition", None)
    if not isinstance(definition, Definition):
        raise TypeError(f"{option}={task!r}: a task, or the name of a task")
    if len(definition.signature.required) > 1:
        raise ValueError(f"{option}={task!r}: it is called with one argument, Ended; give the others defaults")
    spec = definition.spec
    return Callback(state, spec.name, spec.policy, spec.priority, spec.queue)


def own_callback(name: str, option: str, task: object) -> Callback | None:
    """Return the callback that `using` of the task `name` gives by `option`."""
    try:
        return None if task is None else callback_of(CALLBACKS[option], option, task)
    except (TypeError, ValueError) as error:
        raise InvalidOptions(f"{name}.using: {error}") from None


def triggers_of(task: str, schedule: object) -> dict[str, Trigger]:
    """Return the triggers of `schedule=` by the ids of their schedules.

    A lone trigger, and the first of a list, has the name of the task; the second of a list is `report:2`. A trigger
    with a name of its own is `report:name`.
    """
    if isinstance(schedule, Mapping):
        named = cast("Mapping[object, object]", schedule)
        found = {f"{task}:{name}": trigger for name, trigger in named.items()}
    elif isinstance(schedule, list | tuple):
        listed = cast("Sequence[object]", schedule)
        found = {task if place == 1 else f"{task}:{place}": each for place, each in enumerate(listed, 1)}
    else:
        found = {} if schedule is None else {task: schedule}
    if len(found) > SCHEDULES_LIMIT:
        raise ValueError(f"schedule= has {len(found)} triggers; at most {SCHEDULES_LIMIT} are allowed")
    triggers = {id: trigger_of(trigger) for id, trigger in found.items()}
    return {id: trigger for id, trigger in triggers.items() if trigger is not None}


def trigger_of(schedule: object) -> Trigger | None:
    """Return `schedule` as a trigger: a text is parsed, None stays None."""
    if schedule is None or isinstance(schedule, Trigger):
        return schedule
    if not isinstance(schedule, str):
        raise TypeError(f"schedule={schedule!r}: a trigger such as Cron('0 9 * * *'), DailyAt(9) or Every(minutes=5)")
    return Trigger.parse(schedule)


def takes_context(fn: Callable[..., Any]) -> bool:
    """Return whether the first parameter of `fn` is the Context.

    Raises ValueError for a Context at another place, or a parameter `ctx` without an annotation: a caller would have to
    give it as an argument.
    """
    hints = type_hints(fn)
    found = False
    for place, parameter in enumerate(inspect.signature(fn).parameters.values()):
        name, hint = parameter.name, hints.get(parameter.name)
        is_context = hint is Context or Context in get_args(hint)
        if name == "ctx" and hint is None:
            raise ValueError(
                "the parameter ctx has no annotation; write `ctx: Context`, as the first parameter, if it is the "
                "context of the run, and annotate it otherwise, e.g. `ctx: dict`"
            )
        if is_context and (place > 0 or hint is not Context or parameter.kind not in POSITIONAL):
            raise ValueError(
                f"the Context comes first: write `{name}: Context` as the first parameter, in front of the arguments"
            )
        found = found or is_context
    return found


def _in_zone(once: Once | None, tz: str) -> Once | None:
    return once.in_zone(tz) if isinstance(once, Period) else once


def _key_of(key: str | UserKey | None, signature: Signature) -> KeyTemplate | UserKey | None:
    """Return the key, checked against the parameters that it names."""
    parameters = signature.parameters.parameters
    if isinstance(key, UserKey):
        key.check(parameters)
        return key
    return None if key is None else KeyTemplate(key, parameters)


def _check_function(fn: Callable[..., Any], name: str) -> None:
    """Raise InvalidOptions unless `fn` is a plain or async function of a module: a method would need an object that no
    worker has."""
    if not callable(fn) or isinstance(fn, type):
        raise InvalidOptions(f"{fn!r} is not a function; decorate a plain or async function with @app.task")
    try:
        check_name(name)
    except ValueError as error:
        raise InvalidOptions(f"{error}; give name=") from None
    try:
        parameters = list(inspect.signature(fn).parameters)
    except ValueError:
        raise InvalidOptions(
            f"task {name}: {fn!r} does not say which arguments it takes; wrap it in a function of your own"
        ) from None
    if inspect.ismethod(fn) or (parameters and parameters[0] in ("self", "cls")):
        raise InvalidOptions(f"{name} is a method; a task is a function, so that any worker can call it")


def _share_of(share: str | Share | None) -> Share | None:
    return Share(share) if isinstance(share, str) else share


def _share_template(share: Share | None, signature: Signature) -> KeyTemplate | None:
    return None if share is None else KeyTemplate(share.template, signature.parameters.parameters, "share")
