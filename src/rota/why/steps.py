"""Why is a step of a flow not done? The code of the flow is known here."""

from msgspec.structs import replace

from rota.domain.timing import shown
from rota.flow import FlowStatus
from rota.store import Reads
from rota.why.answer import Fact, Why, at, changes_at, first_hold
from rota.why.explain import why
from rota.why.links import to_period


async def why_step(store: Reads, status: FlowStatus, name: str) -> Why:
    """Explain the run of a step; without a run, the state of the step."""
    step = status.steps[name]
    subject, where = f"{status.flow}/{name}", f"--period {status.period}"
    again = f"`rota flows rerun {status.flow} {name} {where}` does it again"
    since = status.now if step.since is None else step.since
    answer = ""
    if step.state in ("done", "skipped"):
        took = "" if step.seconds is None else f" and took {step.seconds:.3g} s"
        facts = [Fact("step", f"it was {step.state} {at(since, status.now)}{took}; {again}")]
        answer = facts[0].text
    elif step.state == "absent" and step.run is None:
        text = f"it was not started in {status.period}, or that is forgotten"
        facts = [Fact("step", f"{text}; `rota flows start {status.flow} {where}`", holds=True), *_before(status, name)]
    elif step.state == "absent":
        facts = [Fact("step", f"it was done, but was reset; `rota flows start {status.flow} {where}`", holds=True)]
    else:
        assert step.run is not None
        of_run = await why(store, step.run.id)
        facts, answer = [fact for fact in of_run.facts if fact.about != "flow"], of_run.answer
        if step.state in ("failed", "cancelled"):
            ended = [fact.text for fact in facts if fact.about == "run"]
            others = [fact for fact in facts if fact.about != "run"]
            facts = [Fact("step", f"{'; '.join(ended)}; {again}", holds=True), *others]
    hold = first_hold(facts)
    answer = hold.text if hold else answer
    here = to_period(status.flow, status.period)
    linked = tuple(replace(fact, link=here) if fact.link is None and fact.about == "step" else fact for fact in facts)
    return Why(f"{subject}@{status.period}", "step", answer, linked, changes_at(facts))


def _before(status: FlowStatus, name: str) -> list[Fact]:
    return [Fact("step", f"before it, {_state(status, parent)}") for parent in status.steps[name].after]


def _state(status: FlowStatus, name: str) -> str:
    step = status.steps[name]
    if step.state == "absent":
        return f"{name} was not started either"
    return f"{name} is {step.state}{'' if step.since is None else f' since {shown(step.since)}'}"
