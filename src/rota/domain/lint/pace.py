"""Rules: does the interval of the fires fit the duration of the runs and the policies?"""

from collections.abc import Callable, Iterator
from math import ceil

from msgspec.structs import replace

from rota.domain.lint.finding import Finding
from rota.domain.lint.target import View, worded
from rota.domain.policy import Retry

COUNTED = 1000
"""Number of retries whose waits are added one by one."""


def overrun(view: View) -> Iterator[Finding]:
    """Yield a finding if a run usually takes longer than the time between two fires."""
    interval, duration = view.interval, view.target.duration
    if interval is None or duration is None or duration <= interval:
        return
    facts = f"A run usually takes {worded(duration)}, but fires can be {worded(interval)} apart"
    slower = f"Fire at most every {worded(duration)}, or make the task faster"
    match view.target.overlap:
        case "queue" | "buffer" if duration > (view.mean_interval or 0):
            yield Finding("overrun", "warning", f"{facts}: waiting runs pile up without end.", f"{slower}.")
        case "queue" | "buffer":
            yield Finding("overrun", "note", f"{facts}: some runs start late, behind the one before.", f"{slower}.")
        case "replace":
            more = f'{slower}, or write overlap="queue" to let a run end.'
            yield Finding("overrun", "warning", f"{facts}: each fire cancels the run before it.", more)
        case "allow":
            beside = ceil(duration / interval)
            yield Finding("overrun", "warning", f"{facts}: up to {beside} runs go on side by side.", f"{slower}.")
        case _:
            more = f'{slower}, or write overlap="queue" if no fire may be left out.'
            yield Finding("overrun", "warning", f"{facts}: fires that meet a running run are skipped.", more)


def jitter_overrun(view: View) -> Iterator[Finding]:
    interval, duration = view.interval, view.target.duration
    jitter = view.trigger.spread().total_seconds()
    if interval is None or duration is None or not jitter:
        return
    if interval - jitter < duration <= interval:
        yield Finding(
            "jitter-overrun",
            "warning",
            f"With its jitter, fires can be as little as {worded(max(0.0, interval - jitter))} apart, "
            f"less than the {worded(duration)} that a run usually takes.",
            f"Keep the jitter within {worded(interval - duration)}, or fire less often."
            if duration < interval
            else "Leave the jitter out, or fire less often.",
        )


def jitter_grace(view: View) -> Iterator[Finding]:
    jitter, grace = view.trigger.spread().total_seconds(), view.target.grace
    if grace is not None and jitter > grace:
        yield Finding(
            "jitter-grace",
            "error",
            f"The jitter can make a run {worded(jitter)} late, "
            f"but after its grace of {worded(grace)} it may no longer start.",
            "Give a grace that is longer than the jitter.",
        )


def grace_interval(view: View) -> Iterator[Finding]:
    interval, grace = view.interval, view.target.grace
    if interval is not None and grace is not None and grace > interval:
        yield Finding(
            "grace-interval",
            "warning",
            f"The grace of {worded(grace)} is longer than the {worded(interval)} between two fires, "
            "so a late run can still start after the next one is due.",
            f"A grace of up to {worded(interval)} lets each run start in its own turn only.",
        )


def catch_up_overlap(view: View) -> Iterator[Finding]:
    if view.target.catch_up == "all" and view.target.overlap == "skip":
        yield Finding(
            "catch-up-overlap",
            "error",
            'catch_up="all" asks for every missed run, but overlap="skip" drops all that meet a running one.',
            'Write overlap="queue" to make up for each in turn, or catch_up="latest" for the last one only.',
        )


def catch_up_grace(view: View) -> Iterator[Finding]:
    interval, grace = view.interval, view.target.grace
    if view.target.catch_up == "all" and interval is not None and grace is not None and grace < interval:
        yield Finding(
            "catch-up-grace",
            "warning",
            f'catch_up="all" asks for every missed run, but those missed more than {worded(grace)} ago (grace) '
            "may no longer start.",
            'Leave grace out to make up for all of them, or write catch_up="latest".',
        )


def timeout_duration(view: View) -> Iterator[Finding]:
    timeout, duration = view.target.timeout, view.target.duration
    if timeout is not None and duration is not None and timeout < duration:
        yield Finding(
            "timeout-duration",
            "error",
            f"The timeout of {worded(timeout)} is shorter than the {worded(duration)} that a run usually takes, "
            "so most runs are cut off.",
            f"Give a timeout well above {worded(duration)}.",
        )


def timeout_interval(view: View) -> Iterator[Finding]:
    interval, timeout = view.interval, view.target.timeout
    if interval is not None and timeout is not None and timeout > interval:
        if view.target.overlap == "replace":
            return  # the next fire ends it
        outcome = {
            "queue": "makes the next ones wait",
            "buffer": "makes the next ones wait",
            "allow": "goes on beside the next ones",
        }
        yield Finding(
            "timeout-interval",
            "note",
            f"The timeout of {worded(timeout)} is longer than the {worded(interval)} between two fires: "
            f"a run that hangs {outcome.get(view.target.overlap or '', 'makes the next ones be skipped')} until then.",
            f"A timeout of up to {worded(interval)} ends a run before the next fire.",
        )


def retries_interval(view: View) -> Iterator[Finding]:
    interval, retry = view.interval, view.target.retry
    if interval is None or retry.limit == 0:
        return
    if retry.limit is None:
        yield Finding(
            "retries-interval",
            "note",
            f"A run that fails is retried without end, and so beyond the {worded(interval)} between two fires.",
            "Retry a few times, and leave the rest to the next fire: it comes anyway.",
        )
        return
    lasting = _lasting(retry, retry.limit, view.target.duration or 0)
    if lasting > interval:
        count = "1 retry" if retry.limit == 1 else f"{retry.limit} retries"
        yield Finding(
            "retries-interval",
            "note",
            f"A run that fails through its {count} lasts {worded(lasting)}, "
            f"longer than the {worded(interval)} between two fires.",
            "Retry less often or sooner, or leave it to the next fire: it comes anyway.",
        )


def _lasting(retry: Retry, limit: int, duration: float) -> float:
    """Return the seconds from the first call to the end of the last one, if all fail."""
    steady = replace(retry, jitter=0.0)
    counted = min(limit, COUNTED)
    waits = sum(steady.wait(failures, "") for failures in range(1, counted + 1))
    more = (limit - counted) * steady.wait(counted, "")
    return waits + more + duration * (limit + 1)


RULES: tuple[Callable[[View], Iterator[Finding]], ...] = (
    overrun,
    jitter_overrun,
    jitter_grace,
    grace_interval,
    catch_up_overlap,
    catch_up_grace,
    timeout_duration,
    timeout_interval,
    retries_interval,
)
