"""Flows: steps that wait for each other, once per period. Makes the run of a call into the run of a step."""

from collections.abc import Mapping, Sequence
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from rota.domain import codec, needs
from rota.domain.fan import Gathers, Spreads
from rota.domain.guards import Guards
from rota.domain.once import named
from rota.domain.run import Member, NewRun, Origin

OnFailure = Literal["block", "continue", "stop"]
"""When a step fails: block lets the steps behind it wait until it succeeds after all, continue runs them without it,
stop cancels the waiting steps of the period."""
CHAIN = "chain"
"""The flow name of all chains (`>>`)."""
KEPT = 8 * 86_400.0
"""Seconds after the end of its period at which a waiting step expires."""


class StepSpec(Struct, frozen=True, kw_only=True):
    """The declaration of a step. `takes` names the steps before it whose results it gets as arguments."""

    name: str
    task: str
    after: tuple[str, ...] = ()
    on_failure: OnFailure = "block"
    takes: tuple[str, ...] = ()
    coded: bool = False
    places: dict[str, str] = {}
    """Of a chain: the parameters that get the results of steps whose names they do not have, and these steps."""
    spreads: Spreads | None = None
    gathers: Gathers | None = None


Steps = Mapping[str, StepSpec]


def group_of(flow: str, period: str) -> str:
    return named(flow, period)


def key_of(flow: str, step: str, period: str) -> str:
    """Return the name of a step in a period: its key, the key of its mark, and the need of the steps behind it."""
    return named(f"{flow}/{step}", period)


def as_step(run: NewRun, spec: StepSpec, steps: Steps, flow: str, period: str, expires_at: float | None) -> NewRun:
    """Return `run`, the run of the call of a step, as one that succeeds once in the period and waits for the steps
    before it."""
    name, group = key_of(flow, spec.name, period), group_of(flow, period)
    parents = [steps[parent] for parent in spec.after]
    origin = Origin(kind="flow", of=flow, period=period)
    taken = {**{step: step for step in spec.takes}, **spec.places}
    takes = {name: needs.done(steps[step].task, key_of(flow, step, period)) for name, step in taken.items()}
    stops = spec.on_failure == "stop"
    member = Member(group, spec.name, stops, takes, spec.coded, spec.spreads, spec.gathers)
    return replace(
        run,
        key=run.key or name,
        unique_key=name,
        guards=Guards(unique="done", join="keep", cooldowns=run.guards.cooldowns),
        needs=tuple(_need(parent, flow, period) for parent in parents),
        group=group,
        expires_at=expires_at,
        body=codec.amend(run.body, origin, member),
    )


def _need(parent: StepSpec, flow: str, period: str) -> str:
    key = key_of(flow, parent.name, period)
    return needs.ended(parent.task, key) if parent.on_failure == "continue" else needs.done(parent.task, key)


def downstream(steps: Steps, first: str) -> list[str]:
    """Return the step `first` and all steps that follow from it, in the order of definition."""
    found = {first}
    for name, spec in steps.items():  # a step is defined after the steps that it follows
        if found & set(spec.after):
            found.add(name)
    return [name for name in steps if name in found]


def check_flow_name(name: str) -> str:
    if name == CHAIN:
        raise ValueError(f"{CHAIN!r} is what chains are named; choose another name")
    if "/" in name or "@" in name:
        raise ValueError(f"the name of a flow or a step holds no / and no @: {name!r}")
    return name


def check_after(name: str, after: Sequence[str], steps: Steps) -> tuple[str, ...]:
    """Return the steps that the step `name` follows, each once. Raise ValueError for an unknown step or for the step
    itself, so that no steps can wait for each other in a ring."""
    if name in steps:
        raise ValueError(f"there are two steps {name}; give one of them name=")
    for parent in after:
        if parent == name:
            raise ValueError(f"step {name} waits for itself")
        if parent not in steps:
            known = ", ".join(steps) or "none yet"
            raise ValueError(f"step {name} follows {parent!r}, which is no step before it; there are: {known}")
    return tuple(dict.fromkeys(after))
