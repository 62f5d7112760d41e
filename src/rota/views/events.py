"""Events as JSON."""

from rota.domain.event import Event
from rota.views.values import Record, iso

FIELDS = ("of", "id", "task", "key", "state", "reason", "fence", "worker", "group", "cursor")


def event_view(event: Event) -> Record:
    """Return an event of `app.events`. What it does not have is null; `fence` is 0 for what was never claimed."""
    shown: Record = {"at": iso(event.at), "name": event.name}
    for name in FIELDS:
        shown[name] = event.fence if name == "fence" else getattr(event, name) or None
    return shown
