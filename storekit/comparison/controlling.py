"""Stories, second part: commands, declarations, schedules and marks."""

from rota.domain.overrides import Overrides
from rota.domain.schedule import Tick
from rota.domain.spec import limit_row
from rota.store import Command, Declared, Edited, Fired, Scope
from storekit.comparison import drawing
from storekit.comparison.drawing import Dice
from storekit.comparison.telling import RunStory
from storekit.model import admit, control
from storekit.model.book import Freeze


class Story(RunStory):
    """Everything that can happen to a store."""

    ticks: list[Tick]

    async def begin(self, dice: Dice) -> None:
        self.ticks = []
        limits = [limit_row(limit) for limit in (drawing.GPU, drawing.PEN) if dice.rarely(2)]
        specs = [*limits, *(drawing.SPECS[task][0] for task in self.tasks)]
        reply = await self.store.declare(specs)
        control.declare_all(self.book, specs)
        assert reply.items == [Declared.ADDED] * len(specs)
        await self.put(dice)

    async def control(self, dice: Dice) -> None:
        command, note = dice.choice(drawing.COMMANDS), dice.choice([None, None, "why"])
        started = [run.id for run in self.seen.values() if run.state == "running" or run.state == "paused"]
        ids = sorted({*dice.some([*self.ids, *started])})
        reply = await self.store.control(command, ids, note)
        self.book.now = reply.now
        assert reply.items == [control.control(self.book, command, id, note) for id in ids]

    async def edit(self, dice: Dice) -> None:
        """Edit runs: some are not queued, and some have other bodies by now."""
        now = await self.now()
        waiting = [run.id for run in self.seen.values() if run.state == "queued"]
        bodies = {id: row.body for id, row in self.book.rows.items()}
        shared = {id for id, row in self.book.rows.items() if row.new.share is not None}
        some = dice.some([*self.ids, *waiting])
        edits = [drawing.new_edit(dice, id, bodies.get(id), now, id in shared) for id in some]
        reply = await self.store.edit(edits)
        self.book.now = reply.now
        assert reply.items == [Edited(control.edit(self.book, edit)) for edit in edits]

    async def control_tasks(self, dice: Dice) -> None:
        command, note = dice.choice(drawing.COMMANDS), dice.choice([None, "why"])
        task, until = dice.choice([*self.tasks, "never"]), await self.draw_end(dice)
        reply = await self.store.control(command, [task], note, of=Scope.TASKS, until=until)
        self.book.now = reply.now
        assert reply.items == [control.control_task(self.book, command, task, note, until)]

    async def draw_end(self, dice: Dice) -> float | None:
        """Return when a pause or a freeze ends by itself: mostly never, or soon."""
        return await self.now() + dice.choice(drawing.STEPS) if dice.rarely(2) else None

    async def freeze(self, dice: Dice) -> None:
        """Freeze the store, or thaw it."""
        wanted = None if dice.rarely(2) else Freeze(await self.draw_end(dice), dice.choice([None, "why"]))
        if wanted is None:
            reply = await self.store.freeze(False)
        else:
            reply = await self.store.freeze(True, wanted.until, wanted.note)
        self.book.now = reply.now
        assert reply.items == [control.freeze(self.book, wanted)]

    async def control_keys(self, dice: Dice) -> None:
        """Pause keys, resume them, or try another command, which does nothing."""
        command, note = dice.choice(drawing.COMMANDS), dice.choice([None, "why"])
        names = sorted({(dice.choice([*self.tasks, "never"]), dice.choice(drawing.KEYS)) for _ in range(2)})
        paused = sorted((name, key) for name, task in self.book.tasks.items() for key in task.paused_keys)
        if paused and dice.rarely(2):
            command, names = Command.RESUME, paused
        reply = await self.store.control(command, [f"{task} {key}" for task, key in names], note, of=Scope.KEYS)
        self.book.now = reply.now
        assert reply.items == [control.control_key(self.book, command, *name, note) for name in names]

    async def resume_tasks(self, dice: Dice) -> None:
        """Resume tasks and thaw the store: in a story with only paused tasks nothing happens."""
        await self.store.freeze(False)
        self.book.freeze = None
        reply = await self.store.control(Command.RESUME, self.tasks, of=Scope.TASKS)
        self.book.now = reply.now
        assert reply.items == [control.control_task(self.book, "resume", task, None) for task in self.tasks]

    async def declare_tasks(self, dice: Dice) -> None:
        specs = [dice.choice(drawing.SPECS[task]) for task in dice.some(self.tasks)]
        specs += [dice.choice(drawing.LIMITS)] if dice.rarely(2) else []
        reply = await self.store.declare(specs)
        self.book.now = reply.now
        assert reply.items == [Declared(answer) for answer in control.declare_all(self.book, specs)]

    async def override(self, dice: Dice) -> None:
        """An operator says something of a task, perhaps of one that nobody has declared."""
        task = dice.choice([*self.tasks, *self.tasks, "never"])
        new = drawing.new_overrides(dice, task, self.book.overrides.get(task) or Overrides())
        reply = await self.store.override(task, new)
        self.book.now = reply.now
        assert reply.items == [Declared(control.override(self.book, task, new))]

    async def mark(self, dice: Dice) -> None:
        now = await self.now()
        edits = [drawing.new_mark(dice, self.tasks, now) for _ in range(dice.randint(1, 2))]
        reply = await self.store.mark(edits)
        self.book.now = reply.now
        assert reply.items == [control.mark(self.book, edit) for edit in edits]

    # -- schedules -----------------------------------------------------------------------------------------------------

    async def declare_schedules(self, dice: Dice) -> None:
        now = await self.now()
        items = [drawing.new_schedule(dice, self.tasks, now) for _ in range(dice.randint(1, 3))]
        versions = {id: row.fields["version"] for id, row in self.book.schedules.rows.items()}
        terms = drawing.new_terms(dice, [item.id for item in items], versions) if dice.rarely(2) else None
        reply = await self.store.declare(items, terms)
        self.book.now = reply.now
        assert reply.items == [Declared(answer) for answer in control.declare_all(self.book, items, terms)]

    async def fire(self, dice: Dice) -> None:
        """Fire ticks as a worker computes them, some of them from a schedule that has changed since."""
        rows = self.book.schedules.rows
        if not rows:
            return await self.declare_schedules(dice)
        ticks: list[Tick] = []
        ids = [dice.choice(sorted(rows)) for _ in range(dice.randint(1, 2))]
        for id in ids:
            fields = rows[id].fields
            version = fields["version"] - dice.rarely(6)
            then = dice.choice([None, *[(fields["next_at"] or 0.0) + step for step in (5.0, 5.0, 60.0)]])
            runs = await self.newcomers(dice, dice.randint(0, 2))
            nominals = tuple(float(place) for place in range(len(runs)))
            missed = dice.choice(drawing.MISSES)
            once = ids.count(id) == 1 and fields["next_at"] is not None  # a schedule that has ended stays as it is
            left = dice.choice([None, None, 1, 3]) if once else None
            ticks.append(Tick(id, version, fields["next_at"], then, then, tuple(runs), nominals, missed, left))
        self.ticks += ticks
        return await self.send_ticks(ticks)

    async def fire_again(self, dice: Dice) -> None:
        if self.ticks:
            await self.send_ticks(dice.some(self.ticks))

    async def send_ticks(self, ticks: list[Tick]) -> None:
        reply = await self.store.fire(ticks)
        self.book.now = reply.now
        for fired, tick in zip(reply.items, ticks, strict=True):
            answers = admit.fire(self.book, tick)
            if answers is None:
                assert fired == Fired(False)
            else:
                assert fired.applied
                self.check_answers(fired.decisions, answers)

    async def control_schedules(self, dice: Dice) -> None:
        command, note = dice.choice(drawing.COMMANDS), dice.choice([None, "why"])
        ids = dice.some([*drawing.SCHEDULES, "never"])
        reply = await self.store.control(command, ids, note, of=Scope.SCHEDULES)
        self.book.now = reply.now
        assert reply.items == [control.control_schedule(self.book, command, id, note) for id in ids]
