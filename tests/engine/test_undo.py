"""Undo in Python: for a day, by the id of an operation or of an audit entry."""

import pytest

from rota import NotUndoable, Operated, Rota, RunNotFound
from rota.client.operations import Operation, perform
from rota.client.undo import Records
from rota.store import Command, RunQuery
from rota.stores.memory import MemoryBackend


async def test_an_operation_can_be_undone_for_a_day() -> None:
    backend = MemoryBackend()
    app = Rota(backend)
    work = app.task(name="work")(lambda: None)
    async with app.client() as client:
        run = await work.using(delay=90_000).submit()
        await perform(client, Operation(action="pause", filter={"task": "work"}), "one")
        assert await app.undo("one") == Operated(1, 0)
        assert (await run.refresh()).state == "queued"
        assert await app.undo("one") == Operated(0, 1, {"changed": 1}), "twice changes nothing more"
        backend.skew += 24 * 3600 + 1
        with pytest.raises(NotUndoable, match="more than 24 hours ago"):
            await app.undo("one")
        with pytest.raises(RunNotFound, match="rota audit"):
            await app.undo("two")


async def test_a_page_that_is_done_again_keeps_what_was_written_first() -> None:
    app = Rota(MemoryBackend())
    work = app.task(name="work")(lambda: None)
    async with app.client() as client:
        runs = [await work.using(delay=9).submit() for _ in range(3)]
        await runs[0].cancel("by hand")
        operation = Operation(action="cancel", filter={"task": "work"})
        await perform(client, operation, "one")  # a worker died here, before it could note its page
        later = await work.using(delay=9).submit()
        assert await perform(client, operation, "one") == Operated(1, 3, {"cancelled": 3})
        assert await app.undo("one") == Operated(3, 0), "not what was cancelled by hand"
        waiting = {found.seen.origin.of async for found in app.runs(task="work", state="queued")}
        assert waiting == {runs[1].id, runs[2].id, later.id}


async def test_a_page_that_was_done_in_part_is_undone_once() -> None:
    app = Rota(MemoryBackend())
    work = app.task(name="work")(lambda: None)
    async with app.client() as client:
        runs = [await work.using(delay=9).submit() for _ in range(3)]
        page = await client.runs(RunQuery(task="work"))
        await Records(client, "one", "cancel", None).keep(page.runs)
        await client.control(Command.CANCEL, [runs[0].id])  # a worker died here
        await perform(client, Operation(action="cancel", filter={"task": "work"}), "one")
        assert await app.undo("one") == Operated(3, 0)
