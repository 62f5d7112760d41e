"""control, declare and mark: commands, and what code declares of tasks and schedules."""

from collections.abc import Sequence

from msgspec.structs import replace

from rota.domain.overrides import Overrides
from rota.domain.run import after
from rota.domain.schedule import Schedule
from rota.domain.spec import TaskSpec, limit_row
from rota.store import MarkRow, RunEdit, Terms
from storekit.model import holds
from storekit.model.admit import start_afresh
from storekit.model.book import Book, Freeze, Mark, Row, Task

WORDS = {"cancel": "cancelled", "drop": "dropped", "pause": "paused", "resume": "resumed"}


def control(book: Book, command: str, id: str, note: str | None) -> int:
    row = book.rows.get(id)
    if row is None or row.final:
        return 0
    changed = {"cancel": cancel, "drop": drop, "pause": pause, "resume": resume}[command](book, row, note)
    if changed:
        row.note = note
        book.count_decision(row, WORDS[command], run=id, note=note)
    if row.finished is not None:
        holds.release(book, row)
    return int(changed or command == "cancel")


def cancel(book: Book, row: Row, note: str | None) -> bool:
    """Cancel a run. A running run gets the command; the same command again changes nothing."""
    if row.state != "running":
        holds.end(book, row, "cancelled", "cancelled")
        return True
    before, row.command = (row.command, row.note), "cancel"
    return before != ("cancel", note)


def drop(book: Book, row: Row, note: str | None) -> bool:
    if row.state == "running":
        return False
    holds.end(book, row, "cancelled", "dropped")
    return True


def pause(book: Book, row: Row, note: str | None) -> bool:
    if row.state == "queued":
        row.state = "paused"
        return True
    if row.state != "running" or row.command == "cancel":
        return False
    before, row.command = (row.command, row.note), "pause"
    return before != ("pause", note)


def resume(book: Book, row: Row, note: str | None) -> bool:
    if row.state == "paused":
        row.state = "queued"
        return True
    if row.command != "pause":
        return False
    row.command = None
    return True


def edit(book: Book, edit: RunEdit) -> str:
    row = book.rows.get(edit.run)
    if row is None or row.state != "queued" or row.too_late(book.now):
        return "stale"
    if edit.body is not None and row.body not in (edit.body, edit.replaces):
        return "stale"
    before = row.due, row.priority, row.expires, row.body, row.new.share
    row.new = row.new if edit.share is None else replace(row.new, share=edit.share)
    row.due = row.due if edit.due_at is None else after(edit.due_at, 0)
    holds.move_expiry(row, before[0])
    row.expires = row.expires if edit.expires_at is None else after(edit.expires_at, 0)
    row.priority = row.priority if edit.priority is None else edit.priority
    if edit.body is not None and row.body != edit.body:
        start_afresh(row, edit.body)
    if (row.due, row.priority, row.expires, row.body, row.new.share) == before:
        return "unchanged"
    book.count_decision(row, "edited", run=row.id)
    return "changed"


def freeze(book: Book, wanted: Freeze | None) -> bool:
    """Freeze the store, or thaw it (None). Return whether that changed anything."""
    known, book.freeze = book.frozen(book.now), wanted
    return known != wanted


def control_task(book: Book, command: str, name: str, note: str | None, until: float | None = None) -> int:
    """Cancel and drop end the waiting runs of a task; pause and resume are about the task itself. A later pause moves
    the end of an earlier one."""
    task, changed = book.task(name), 0
    if command in ("cancel", "drop"):
        waiting = [row for row in book.rows.values() if row.new.task == name and row.waiting]
        for row in waiting:
            holds.end(book, row, "cancelled", "dropped")
            row.note = note
        for row in waiting:
            holds.release(book, row)
        changed = len(waiting)
    elif command == "resume" or until is None or until > book.now:
        pausing, before = command == "pause", task.is_paused(book.now)
        if before != pausing or (pausing and task.paused_until != until):
            task.paused, task.paused_until = pausing, until if pausing else None
            book.tasks[name] = task
            changed = 1
    if changed:
        book.decisions.add(name, None, WORDS[command], book.now, count=changed, note=note)
    return changed


def control_key(book: Book, command: str, name: str, key: str, note: str | None) -> int:
    """Pause or resume a key of a task; nothing else can be done to a key."""
    task = book.task(name)
    if command not in ("pause", "resume") or (key in task.paused_keys) == (command == "pause"):
        return 0
    task.paused_keys ^= {key}
    book.tasks[name] = task
    book.decisions.add(name, key, WORDS[command], book.now, note=note)
    return 1


def control_schedule(book: Book, command: str, id: str, note: str | None) -> bool:
    row = book.schedules.rows.get(id)
    changed = book.schedules.control(command, id, note, book.now)
    if row is not None and changed:
        book.decisions.add(row.fields["task"], row.fields["key"], WORDS[command], book.now, note=note)
    return changed


def declare_all(book: Book, items: Sequence[TaskSpec | Schedule], terms: Terms | None = None) -> list[str]:
    """Declare items, on terms that are about schedules. A named limit that nobody has declared gets the number that a
    task gives it."""
    if terms is not None:
        return declare_on_terms(book, [item for item in items if isinstance(item, Schedule)], terms)
    specs = [item for item in items if isinstance(item, TaskSpec)]
    for row in [limit_row(limit) for spec in specs for limit in spec.limits]:
        if row.name not in book.tasks and row.name not in [spec.name for spec in specs]:
            declare(book, row)
    return [declare(book, item) for item in items]


def declare_on_terms(book: Book, items: Sequence[Schedule], terms: Terms) -> list[str]:
    """Declare schedules and delete others, or do nothing of it."""
    known, everything = book.schedules, len(items) + len(terms.drop)
    if all(known.judged(item)[0] == "unchanged" for item in items) and not any(id in known.rows for id in terms.drop):
        return ["unchanged"] * everything
    if any(known.judged(item)[0] == "taken" for item in items):
        return ["taken"] * everything
    versions = {id: row.fields["version"] for id, row in known.rows.items()}
    if any(versions.get(id, 0) != version for id, version in terms.versions.items()):
        return ["conflict"] * everything
    answers = [declare(book, item) for item in items]
    dropped = [control_schedule(book, "drop", id, None) for id in terms.drop]
    return answers + ["dropped" if gone else "unchanged" for gone in dropped]


def override(book: Book, name: str, new: Overrides) -> str:
    """Replace what an operator says of a task, if the operator knows what was said before."""
    known = book.overrides.get(name)
    if known == new:
        return "unchanged"
    if new.version != (known.version if known else 0) + 1:
        return "conflict"
    book.tasks[name] = book.task(name)
    pace = book.in_force(name).pace
    book.overrides[name] = new
    forget_rates(book, name, pace)
    return "changed"


def forget_rates(book: Book, name: str, before: tuple[float | None, int, bool]) -> None:
    """Forget how full the buckets of a task are, if it has another rate than `before`."""
    if book.in_force(name).pace != before:
        book.full_at = {about: at for about, at in book.full_at.items() if about[0] != name}


def declare(book: Book, item: TaskSpec | Schedule) -> str:
    if isinstance(item, Schedule):
        return book.schedules.declare(item, book.now)
    known = book.tasks.get(item.name)
    task = Task(
        enabled=item.enabled,
        paused=known is not None and known.paused,
        paused_until=None if known is None else known.paused_until,
        limits=tuple(limit_row(one).name for one in item.limits),
        weights=item.share.weights if item.share else None,
        paused_keys=known.paused_keys if known else frozenset(),
    ).gated_by(item.limit, item.rate)
    if known == task:
        return "unchanged"
    pace = book.in_force(item.name).pace
    book.tasks[item.name] = task
    forget_rates(book, item.name, pace)
    return "added" if known is None else "changed"


def mark(book: Book, edit: MarkRow) -> bool:
    about, new = (edit.task, edit.key), edit.mark
    mark = Mark() if new is None else Mark(new.succeeded_at, new.finished_at, new.failures)
    if book.mark(about) == mark:
        return False
    book.marks[about] = mark
    met = ["*{} {}".format(*about)] if mark.finished is not None else []
    holds.meet_needs(book, [*met, "+{} {}".format(*about)] if mark.succeeded is not None else met)
    return True
