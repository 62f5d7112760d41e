"""The day: twelve steps, once, each as soon as those before it are done."""

import asyncio

from examples.race_day.app import DAY, app, log
from examples.race_day.races import plan_races
from examples.race_day.racing import ModelAsleep, Race, racing
from rota import Context, Cron, Inputs, TaskError


@app.task
async def clear_log(ctx: Context) -> int:
    lines = len(racing(ctx).log)
    racing(ctx).log.clear()
    return lines


@app.task
async def today(date_string: str) -> str:
    """The day comes as the racing service writes it, DDMMYYYY: `date_of` gives it to each step that asks."""
    return date_string


@app.task
async def pastraces(today: str) -> list[str]:
    await asyncio.sleep(1)
    return [f"{today} of last year"]


@app.task
async def yesterday(ctx: Context) -> int:
    """Nothing to do is no failure: the steps behind it go on."""
    races = list(racing(ctx).archived)
    if not races:
        raise TaskError("skipped", "there were no races yesterday")
    return len(races)


@app.task
async def predictions(ctx: Context) -> dict[str, float]:
    """It fails while the model is asleep, holds up the steps behind it, and is tried again by the flow's recheck."""
    try:
        return await racing(ctx).predict()
    except ModelAsleep as error:
        raise TaskError("failed", str(error)) from error


@app.task
async def history(predictions: dict[str, float]) -> int:
    return len(predictions)


@app.task
async def program(ctx: Context, today: str, history: int) -> list[Race]:
    """It follows two steps and takes the results of both, by their names."""
    races = await racing(ctx).program()
    log.info("%s: %d races, %d of them with predictions", today, len(races), history)
    return races


@app.task
async def participants(ctx: Context, program: list[Race]) -> dict[str, list[str]]:
    """Of fifty races at most: results are handed on through the store, so they are kept small."""
    return {race.id: await racing(ctx).horses(race.id) for race in program[:50]}


@app.task
async def careers(ctx: Context, participants: dict[str, list[str]]) -> dict[str, int]:
    horses = [horse for of_race in participants.values() for horse in of_race]
    wins = {horse: await racing(ctx).wins(horse) for horse in horses}
    if new := sum(count is None for count in wins.values()):
        ctx.warn(f"{new} horses have never run")
    await asyncio.sleep(2)
    return {horse: count for horse, count in wins.items() if count is not None}


@app.task
async def favorability(careers: dict[str, int]) -> dict[str, float]:
    """Nobody waits for it: the planning goes on beside it."""
    await asyncio.sleep(5)
    most = max(careers.values(), default=1)
    return {horse: round(wins / most, 2) for horse, wins in careers.items()}


@app.task
def plan_race(ctx: Context, date_string: str) -> str:
    """A plain function, as planners often are."""
    report = plan_races(ctx, date_string)
    log.info("planned: %s", report)
    return report


@app.task
async def prepare_tomorrow(ctx: Context, date_string: str) -> None:
    racing(ctx).archived.extend(racing(ctx).races)
    log.info("the day %s is prepared", date_string)


def date_of(inputs: Inputs) -> dict[str, str]:
    """Said once, for all twelve steps: a step takes it if it has a parameter of this name."""
    return {"date_string": inputs.period}


day = app.flow("race_day", once=DAY, recheck=Cron("*/7 4-23 * * *"), args=date_of, description="a day at the races")
day.step(clear_log)
day.step(today, after=clear_log)
day.step(pastraces, after=today)
day.step(yesterday, after=pastraces)
day.step(predictions, after=yesterday)
day.step(history, after=predictions)
day.step(program, after=[today, history])
day.step(participants, after=program)
day.step(careers, after=participants)
day.step(favorability, after=careers)
day.step(plan_race, after=careers, expect="04:30")
day.step(prepare_tomorrow, after=plan_race)
