"""How runs look on a terminal: a list of them, and one in full."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from rota.cli.render.show import Column, Record, to_json
from rota.cli.render.text import clean, coarse, iso, one_line, plural, relative, span
from rota.domain import needs
from rota.domain.fan import is_fan_need
from rota.domain.run import DEFAULT_QUEUE
from rota.domain.secrets import hidden, secrets_of
from rota.domain.timing import shown
from rota.views.runs import result_view
from rota.views.values import from_json

if TYPE_CHECKING:
    from rota.domain.run import Attempt, Run
    from rota.store import Page

STATE_STYLE = {
    "queued": "cyan",
    "running": "bold yellow",
    "paused": "magenta",
    "succeeded": "green",
    "failed": "bold red",
    "cancelled": "bright_black",
}


def state_text(state: str) -> Text:
    return Text(clean(state), style=STATE_STYLE.get(state, ""))


def _dim(text: str) -> Text:
    return Text(text, style="dim")


ID_SHOWN = 12
"""Characters of a run's id that are shown, from its end; every command accepts them instead of the whole id."""


def short_id(id: str) -> str:
    return clean(id)[-ID_SHOWN:]


def run_columns(page: "Page") -> list[Column]:
    """Return the columns of a list of runs; instants are relative to the store's time."""
    runs = {run.id: run for run in page.runs}

    def run(record: Record) -> "Run":
        return runs[str(record["id"])]

    return [
        Column("id", lambda r: _dim(short_id(run(r).id)), whole=True),
        Column("task"),
        Column("key", piped=True),
        Column("state", lambda r: state_text(run(r).state)),
        Column("priority", piped=True),
        Column("queue", lambda r: "" if run(r).queue == DEFAULT_QUEUE else one_line(run(r).queue), sparse=True),
        Column("created_at", lambda r: coarse(page.now - run(r).created_at), title="age", right=True),
        Column("due_at", piped=True),
        Column("finished_at", piped=True),
        Column("fence", title="claims", right=True, from_width=100),
        Column("failures", piped=True),
        Column("losses", piped=True),
        Column("reason", piped=True),
        Column(
            "error",
            lambda r: _dim(outcome(run(r), page.now)),
            lambda r: run(r).error and str(run(r).error),
            title="outcome",
            elastic=True,
        ),
        Column("origin", lambda r: _dim(origin_brief(run(r))), lambda r: origin_words(run(r)), from_width=120),
    ]


def outcome(run: "Run", now: float) -> str:
    """Return the end of a run, or what it waits for, in a few words."""
    match run.state:
        case "queued" if run.needs:
            return ", ".join(part for part in (f"waits for {needs_words(run)}", progress(run)) if part)
        case "queued" if run.parked:
            return "waits for a limit or rate"
        case "queued" if run.failures:
            return f"retry {relative(run.due_at, now)} after {one_line(str(run.error or 'a failure'))}"
        case "queued":
            return f"due {relative(run.due_at, now)}"
        case "running":
            return ", ".join(part for part in (f"for {coarse(now - (run.claimed_at or now))}", progress(run)) if part)
        case "succeeded":
            return f"in {span(last_seconds(run))}" if run.attempts else ""
        case _:
            return one_line(str(run.error or run.note or run.reason or ""))


def _shown(run: "Run", encoded: bytes) -> bytes:
    """Return JSON of the run without its secrets."""
    names = secrets_of(run.body)
    return to_json(hidden(from_json(encoded), names)).encode() if names else encoded


def needs_words(run: "Run") -> str:
    """Return what the run waits for: names of steps, ids of runs."""
    names = [_need_words(need) for need in run.needs]
    others = f" and {plural(len(names) - 1, 'other')}" if len(names) > 1 else ""
    return one_line(f"{names[0]}{others}")


def _need_words(need: str) -> str:
    if is_fan_need(need):
        return "the runs of its list"
    return need if (named := needs.named(need)) is None else named.key


def progress(run: "Run") -> str:
    return one_line(f"{run.progress.share:.0%} {run.progress.message}") if run.progress else ""


def last_seconds(run: "Run") -> float:
    """Return the seconds that the last call took; if the handler was not called, the seconds under lease."""
    if not run.attempts:
        return 0.0
    last = run.attempts[-1]
    return last.ended_at - last.claimed_at if last.seconds is None else last.seconds


def run_page(run: "Run", now: float) -> RenderableType:
    parts: list[RenderableType] = [
        Text.assemble((clean(run.task), "bold"), "  ", state_text(run.state)),
        Text(run.id, style="dim"),
        Text(),
        _facts(run, now),
    ]
    parts += _section("Arguments", _json(_shown(run, run.args)))
    if run.result is not None:
        parts += _section("Result", _json(to_json(result_view(run)).encode()))
    if run.error is not None:
        parts += _section("Error", Text(clean(str(run.error)), style="red"))
        if run.error.traceback:
            parts.append(Padding(Text(clean(run.error.traceback).rstrip(), style="dim"), (0, 0, 0, 2)))
    if run.attempts:
        parts += _section("Attempts", _attempts(run.attempts))
    return Group(*parts)


def _facts(run: "Run", now: float) -> Table:
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column(overflow="fold")
    instants = (
        ("created", run.created_at),
        ("last touched", run.touched_at if run.touches > 1 else None),
        ("due", run.due_at),
        ("expires", run.expires_at),
        ("claimed", run.claimed_at),
        ("leased until", run.until),
        ("finished", run.finished_at),
    )
    for name, instant in instants:
        if instant is not None:
            grid.add_row(name, f"{shown(instant)}  ({relative(instant, now)})")
    others = (
        ("key", run.key),
        ("priority", str(run.priority)),
        ("share", run.share),
        ("queue", None if run.queue == DEFAULT_QUEUE else run.queue),
        ("counters", f"claims {run.fence}, failures {run.failures}, losses {run.losses}"),
        ("touches", f"{run.touches}: made once, joined {run.touches - 1:,} times" if run.touches > 1 else None),
        ("policy", policy_words(run)),
        ("origin", origin_words(run, shown)),
        ("headers", ", ".join(f"{name}={value}" for name, value in run.headers.items()) or None),
        ("worker", run.worker),
        ("progress", progress(run) or None),
        ("checkpoint", None if run.saved is None else to_json(from_json(_shown(run, run.saved)))),
        ("waits for", needs_words(run) if run.needs else None),
        ("parked", "waits for a limit or rate" if run.parked else None),
        ("cancel asked", "yes" if run.cancel_requested else None),
        ("pause asked", "yes" if run.pause_requested else None),
        ("reason", run.reason),
        ("note", run.note),
    )
    for name, value in others:
        if value is not None:
            grid.add_row(name, Text(clean(value)))
    return grid


def origin_words(run: "Run", spell: Callable[[float], str] = iso) -> str:
    """Return what made the run; if a schedule did, for which tick."""
    origin = run.origin
    tick = "" if origin.nominal is None else f", tick of {spell(origin.nominal)}"
    match origin.kind:
        case "schedule":
            return f"schedule {origin.of}{tick}"
        case "run_now":
            return f"schedule {origin.of}, run by hand"
        case "flow" | "plan":
            step = f", step {run.member.step}" if run.member is not None and run.member.step else ""
            return f"{origin.kind} {origin.of} of {origin.period}{step}"
        case _:
            return f"{origin.kind} of {origin.of}{tick}" if origin.of else origin.kind


def origin_brief(run: "Run") -> str:
    """Return the origin of `run` in short, for a table column."""
    return run.origin.of or "" if run.origin.kind in ("schedule", "run_now", "flow", "plan") else run.origin.kind


def policy_words(run: "Run") -> str:
    retry, policy = run.policy.retry, run.policy
    words = ["no retries"]
    if retry.limit != 0:
        count = "any number of" if retry.limit is None else retry.limit
        words = [f"{count} retries, {retry.backoff} from {span(retry.delay)}"]
    words.append(f"timeout {span(policy.timeout)}" if policy.timeout is not None else "no timeout")
    words.append("at most once" if policy.lost == "fail" else f"up to {policy.max_losses} losses")
    return "; ".join(words)


def _attempts(attempts: "tuple[Attempt, ...]") -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold dim")
    for name in ("claim", "outcome", "claimed", "took", "error"):
        table.add_column(name, justify="right" if name in ("claim", "took") else "left", no_wrap=name != "error")
    for attempt in attempts:
        seconds = attempt.ended_at - attempt.claimed_at if attempt.seconds is None else attempt.seconds
        table.add_row(
            str(attempt.fence),
            Text(clean(attempt.outcome)),
            shown(attempt.claimed_at),
            span(seconds),
            Text(one_line(str(attempt.error or "")), style="red"),
        )
    return table


def _section(title: str, body: RenderableType) -> list[RenderableType]:
    return [Text(), Text(title, style="bold"), Padding(body, (0, 0, 0, 2))]


def _json(encoded: bytes) -> Text:
    return Text(clean(to_json(from_json(encoded), indent=2)))
