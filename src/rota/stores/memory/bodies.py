"""What the memory store reads of a put: its fields, and the body of the run."""

from typing import Any

from msgspec.structs import replace

from rota.domain import codec
from rota.domain.policy import Policy
from rota.domain.run import NewRun, Origin, Run

_BLANK = Run("")


def added(new: NewRun, now: float, due_at: float, parked: bool) -> Run:
    """Return the run of a put: a blank run with the fields that most runs have, then with the others. Each field that
    is named costs 0.03 microseconds."""
    body = new.body
    read = codec.decode_or_blank(body)
    run = replace(
        _BLANK,
        id=new.id,
        due_at=due_at,
        parked=parked,
        task=new.task,
        key=new.key,
        unique_key=new.unique_key,
        priority=new.priority,
        created_at=now,
        touched_at=now,
        queue=new.queue,
        share=new.share,
        args=bytes(read.args),
        body=body,
    )
    if not codec.has_args_only(read):
        run = replace(run, **fields_of(body))
    if new.needs or new.callbacks:
        run = replace(run, needs=new.needs, cooldowns=new.cooldowns, awaited=bool(new.callbacks))
    if new.writes_mark or new.expires_after is not None or new.expires_at is not None:
        run = replace(run, writes_mark=new.writes_mark, expires_at=new.expiry(now))
    return run


def fields_of(body: bytes) -> dict[str, Any]:
    """The fields of a Run that its body has."""
    read = codec.decode_or_blank(body)
    return {
        "args": bytes(read.args),
        "origin": read.origin or Origin(),
        "policy": read.policy or Policy(),
        "member": read.member,
        "body": body,
        "headers": read.headers or {},
        "on_end": read.on_end,
        "unique_in": read.unique_in,
    }
