"""Changes: how the code differs from the store, and which runs a start would make up."""

from rota.domain.difference import Change, Owed
from rota.views.values import Record, iso, plain_value


def change_view(change: Change) -> Record:
    return {
        "change": change.kind,
        "of": change.of,
        "id": change.id,
        "fields": {
            field.name: {"before": plain_value(field.name, field.before), "after": plain_value(field.name, field.after)}
            for field in change.fields
        },
        "next_before": iso(change.next_before),
        "next_after": iso(change.next_after),
    }


def owed_view(owed: Owed) -> Record:
    missed = owed.missed
    return {
        "schedule": owed.schedule,
        "task": owed.task,
        "runs": owed.runs,
        "missed": missed and {"count": missed.count, "first": iso(missed.first), "last": iso(missed.last)},
    }
