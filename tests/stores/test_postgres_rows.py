"""Rows are read by place: each value has to arrive where its column says."""

from rota.domain.decision import Reason
from rota.domain.guards import Cooldown
from rota.domain.run import Failure, Progress, State
from rota.stores.postgres.rows import RUN_COLUMNS, read_run
from storekit.contract import new_run

WIRE = new_run().body
TEXTS = {"id": "a", "worker": "b", "note": "c", "task": "d", "key": "e", "unique_key": "f", "queue": "g", "share": "h"}
TIMES = {
    "due_at": 1.0,
    "expires_at": 2.0,
    "claimed_at": 3.0,
    "until": 4.0,
    "finished_at": 5.0,
    "created_at": 6.0,
    "touched_at": 7.0,
}
COUNTS = {"fence": 1, "failures": 2, "losses": 3, "priority": 4, "touches": 5}
PLAIN = {**TEXTS, **TIMES, **COUNTS, "result": b"r", "saved": b"s"}
FLAGS = ("cancel_requested", "pause_requested", "parked", "writes_mark", "awaited")
READ = {
    "state": ("failed", State.FAILED),
    "reason": ("expired", Reason.EXPIRED),
    "error": ('{"type":"t","message":"m","traceback":"x"}', Failure("t", "m", "x")),
    "progress": ('{"share":0.5,"message":"half"}', Progress(0.5, "half")),
    "needs": (["g", "h"], ("g", "h")),
    "cooldowns": ("[[0,60.0]]", (Cooldown(0, 60.0),)),
}


def test_every_column_of_a_run_arrives_where_it_belongs() -> None:
    stored = {**PLAIN, **{name: text for name, (text, _) in READ.items()}, "attempts": None, "body": WIRE}
    for flag in FLAGS:
        row = {**stored, **dict.fromkeys(FLAGS, False), flag: True}
        run = read_run(row[column] for column in RUN_COLUMNS.split(", "))
        assert {name: getattr(run, name) for name in PLAIN} == PLAIN
        assert {name: getattr(run, name) for name in READ} == {name: value for name, (_, value) in READ.items()}
        assert [name for name in FLAGS if getattr(run, name)] == [flag]
        assert (run.body, run.attempts) == (WIRE, ())
