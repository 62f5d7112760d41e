"""Keys and queues: the key of a run, filled from its arguments by a template such as "{path}" or "{user.id}:{day}"."""

import hashlib
import string
from collections.abc import Collection, KeysView, Mapping

KEY_LIMIT = 512
QUEUE_LIMIT = 100


class KeyTemplate:
    """A key template: checked when the task is defined, filled when a run is submitted."""

    def __init__(self, template: str, parameters: Collection[str], name: str = "key") -> None:
        """`name` is the option that has the template, for errors."""
        self._template = template
        self._written = f"{name}={template!r}"
        try:
            wanted = parameters_of(template)
        except ValueError as error:
            raise ValueError(f"{self._written}: {error}") from None
        for parameter in wanted:
            if parameter not in parameters:
                known = ", ".join(parameters) or "none"
                raise ValueError(f"{self._written}: there is no parameter {parameter!r}; there are: {known}")

    def fill(self, arguments: Mapping[str, object]) -> str:
        try:
            return check_key(self._template.format_map(arguments))
        except (KeyError, AttributeError, IndexError, TypeError) as error:
            raise ValueError(f"{self._written} cannot be filled in: {type(error).__name__} {error}") from None


def parameters_of(template: str) -> KeysView[str]:
    """Return the parameters that a template reads, in their order."""
    fields = [field for _, field, _, _ in string.Formatter().parse(template) if field is not None]
    return dict.fromkeys(field.split(".")[0].split("[")[0] for field in fields).keys()


def check_key(key: str) -> str:
    if not 0 < len(key) <= KEY_LIMIT:
        raise ValueError(f"a key has 1 to {KEY_LIMIT} characters, this has {len(key)}: {key[:50]!r}")
    if any(ord(c) < 32 or 0xD800 <= ord(c) < 0xE000 for c in key):
        raise ValueError(f"key {key!r} holds characters that not every store can carry")
    return key


def check_queue(queue: object) -> str:
    """Return the name of a queue if every store and `rota worker --queues a,b` can carry it; else raise ValueError."""
    if not isinstance(queue, str) or not 0 < len(queue) <= QUEUE_LIMIT or not queue.isprintable():
        raise ValueError(f"queue={queue!r}: 1 to {QUEUE_LIMIT} printable characters")
    if queue == "*" or any(c in ", " for c in queue):
        raise ValueError(f"queue={queue!r}: a name without spaces and commas; a worker without --queues serves all")
    return queue


def digest(args: bytes) -> str:
    """Return the text that is used as the key of a run without a key: a digest of its arguments."""
    return "#" + hashlib.sha256(args).hexdigest()[:32]
