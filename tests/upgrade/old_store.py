"""What a store of an earlier version holds: something of everything that a store keeps."""

from rota.domain.guards import Mark
from rota.domain.lifecycle import Failed, Succeeded
from rota.domain.policy import Limit, Policy, Rate
from rota.domain.run import NewRun, Note, Progress, Run
from rota.domain.spec import TaskSpec
from rota.store import Command, MarkRow, Report, Scope, Tally
from storekit.contract.stage import BOOM, LEASE, Stage, new_run
from storekit.contract.timetable import Timetable

RESIZE, ONCE, MAIL, OFF = "resize", "once", "mail", "off"
FAR = 4e9
"""An instant that no test lives to see."""
BIG = b'{"name":"' + b"x" * 2000 + b'"}'
SPECS = (
    TaskSpec(RESIZE, limit=Limit(total=2, per_key=1)),
    TaskSpec(ONCE),
    TaskSpec(MAIL, rate=Rate(100, per=60)),
    TaskSpec(OFF),
)


async def fill(stage: Stage) -> None:
    store = stage.store
    await store.declare(SPECS)
    await store.control(Command.PAUSE, [OFF], "until Monday", "eve", of=Scope.TASKS)
    await end_some(stage)
    await hold_some(stage)
    await Timetable(stage).add("report")
    await Timetable(stage).add("held", catch_up="all")
    await Timetable(stage).control(Command.PAUSE, "held", note="too loud", by="eve")
    await store.mark([MarkRow(ONCE, "by hand", Mark(succeeded_at=1e9, finished_at=1e9))])
    await stage.claim(
        "reporter", tasks=["none"], report=Report(host="h", seats=2, tallies=(Tally(RESIZE, succeeded=5),))
    )


async def end_some(stage: Stage) -> None:
    """Succeeded, failed, cancelled; and one that was refused because of the first."""
    await stage.end(await take(stage, new_run(ONCE, id="good", key="14", unique="done")), Succeeded(b"7"), 0.25)
    await stage.end(await take(stage, new_run(ONCE, id="bad", key="15", unique="done", policy=Policy())), Failed(BOOM))
    await stage.put(new_run(ONCE, id="unwanted"))
    await stage.cancel(new_run(id="unwanted"), "not today")
    assert not await stage.admit(new_run(ONCE, id="again", key="14", unique="done", join="refuse"))


async def hold_some(stage: Stage) -> None:
    """Running, parked behind it, waiting for it, failed once, queued, later, big and paused."""
    running = await take(stage, new_run(RESIZE, id="running", key="a.png"))
    await stage.store.renew([running.lease], LEASE, {"running": Note(Progress(0.5, "half"), b"3")})
    await stage.end(await take(stage, new_run(MAIL, id="failed once", key="m")), Failed(BOOM))
    await stage.put(
        new_run(RESIZE, id="parked", key="a.png"),
        new_run(RESIZE, id="child", needs=["running"]),
        new_run(RESIZE, id="queued", key="b.png", unique="queued", expires_at=FAR),
        new_run(RESIZE, id="big", args=BIG),
        new_run(RESIZE, id="later", at=FAR, priority=5),
        new_run(RESIZE, id="paused"),
        new_run(OFF, id="off"),
    )
    await stage.pause(new_run(id="paused"), "wait")


async def take(stage: Stage, new: NewRun) -> Run:
    """Put, and claimed by a worker that will not come back."""
    await stage.put(new)
    (run,) = (await stage.claim("dead", tasks=[new.task])).runs
    return run
