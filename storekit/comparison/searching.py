"""Searches for a story in which a store and the model disagree, and shortens that story.

Every step has its own random generator, seeded by the story and the number of the step: a story without some of its
steps does the same in the other steps. Hypothesis could do it too, but spends half of its time on drawing.
"""

import time
import traceback
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence
from contextlib import AsyncExitStack
from enum import StrEnum
from typing import Any, cast

from msgspec import Struct
from msgspec.structs import fields

from rota.store import Backend, HandsOver, Store
from storekit.comparison import drawing
from storekit.comparison.controlling import Story
from storekit.comparison.drawing import Dice
from storekit.comparison.folding import Folded

Make = Callable[[], Backend | Coroutine[Any, Any, Backend]]
"""A function that returns the backend of a new and empty store."""

WEIGHTS = {
    "put": 4,
    "put_again": 1,
    "fan_out": 2,
    "claim": 5,
    "wait_for_work": 1,
    "claim_again": 1,
    "claim_with_an_old_number": 1,
    "renew": 2,
    "settle": 6,
    "settle_late": 3,
    "settle_again": 1,
    "rescue": 3,
    "control": 3,
    "control_tasks": 1,
    "control_keys": 2,
    "freeze": 1,
    "edit": 3,
    "resume_tasks": 1,
    "declare_tasks": 1,
    "override": 2,
    "mark": 1,
    "declare_schedules": 1,
    "fire": 3,
    "fire_again": 1,
    "control_schedules": 1,
    "sweep": 1,
    "pass_time": 4,
}
OFTEN = ("put", "claim", "settle", "pass_time")
CHECK_OTHERS_EVERY = 4
SHRINKING = 20.0
"""Seconds that may be spent on shortening a story; less than a test may take."""


Call = tuple[Any, ...]
"""(verb, arguments, keywords, answer), or the number and the name of a step."""


class Disagreement(AssertionError):
    """A story in which the store and the model disagree, or in which the store raises an error."""


async def search(make: Make, seed: int, stories: int, steps: int = 40) -> None:
    """Play `stories` stories. The same seed plays the same stories on every machine."""
    for place in range(stories):
        await _play_or_shrink(make, f"{seed}/{place}", range(steps))


async def search_for(make: Make, seed: int, seconds: float, steps: int = 100) -> int:
    """Play stories for `seconds`, and return how many there were."""
    end, place = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        await _play_or_shrink(make, f"{seed}/{place}", range(steps))
        place += 1
    return place


async def play(make: Make, name: str, steps: Sequence[int]) -> None:
    """Play the given steps of the story `name`."""
    calls: list[Call] = []
    try:
        async with AsyncExitStack() as opened:
            made = make()
            backend = await made if isinstance(made, Coroutine) else made
            store = cast(Store, _Recorded(await opened.enter_async_context(backend.open()), calls))
            await opened.enter_async_context(store.changes())  # so that the store may hand runs over
            await _play(backend, store, name, steps, calls)
    except Exception as error:
        story = "\n".join(_line(*call) for call in calls)
        line = traceback.extract_tb(error.__traceback__)[-1].line
        raise Disagreement(f"story {name!r}, steps {list(steps)}: {line}\n{error!r}\n{story}") from error


async def _play(backend: Backend, store: Store, name: str, steps: Sequence[int], calls: list[Call]) -> None:
    """Play a story. Each story uses some of the tasks and prefers some of the actions, so that these meet often."""
    dice = Dice(name)
    story = Story(backend, store, dice.sample(sorted(drawing.SPECS), 3))
    weights = {verb: n * dice.choice([0, 1, 1, 3]) if verb not in OFTEN else n for verb, n in WEIGHTS.items()}
    await story.begin(dice)
    story.events = dice.choice([None, Folded(store)])
    await story.check_runs()
    for step in steps:
        dice = Dice(f"{name}/{step}")
        (verb,) = dice.choices(list(weights), list(weights.values()))
        calls.append((f"step {step}", verb))
        story.step, story.made = str(step), 0
        await getattr(story, verb)(dice)
        await story.check_runs()
        if step % CHECK_OTHERS_EVERY == 0:
            await story.check_others()
    await story.check_others()


async def _play_or_shrink(make: Make, name: str, steps: Sequence[int]) -> None:
    try:
        await play(make, name, steps)
    except Disagreement as found:
        raise await _shrunk(make, name, steps, found) from None


async def _shrunk(make: Make, name: str, steps: Sequence[int], found: Disagreement) -> Disagreement:
    """Return the shortest story found that still fails: leave out half of the steps, then quarters, down to single
    steps."""
    end, left = time.monotonic() + SHRINKING, list(steps)
    size = len(left)
    while size:
        for fewer in _without(left, size):
            if time.monotonic() > end:
                return found
            try:
                await play(make, name, fewer)
            except Disagreement as again:
                found, left = again, fewer
                break
        else:
            size //= 2
    return found


def _without(steps: Sequence[int], size: int) -> Iterator[list[int]]:
    for start in range(len(steps) - size, -1, -size):
        yield [*steps[:start], *steps[start + size :]]


def _line(verb: str, args: Any, kwargs: dict[str, Any] | None = None, answer: object = None) -> str:
    if kwargs is None:
        return f"{verb}: {args}"
    words = [_brief(arg) for arg in args] + [f"{name}={_brief(value)}" for name, value in kwargs.items()]
    return f"    {verb}({', '.join(words)}) -> {_brief(answer)}"


def _brief(value: object) -> str:
    """Return a value as text, without the fields that have their default."""
    if isinstance(value, list | tuple):
        return f"[{', '.join(_brief(item) for item in cast(list[object], value))}]"
    if not isinstance(value, Struct):
        return str(value) if isinstance(value, StrEnum) else repr(value)
    shown = {
        field.name: getattr(value, field.name) for field in fields(value) if getattr(value, field.name) != field.default
    }
    return f"{type(value).__name__}({', '.join(f'{name}={_brief(item)}' for name, item in shown.items())})"


class _Recorded:
    """A store that records its calls and answers."""

    def __init__(self, store: Store, calls: list[Call]) -> None:
        self._store = store
        self._calls = calls
        self.hands_over: HandsOver | None = None
        if store.hands_over is not None:
            self.hands_over = cast(HandsOver, self)
            self.hears = store.hands_over.hears
            self.hints_on = store.hands_over.hints_on
            self.claim_ready = self._recorded("claim_ready", store.hands_over.claim_ready)

    def __getattr__(self, verb: str) -> Any:
        real = getattr(self._store, verb)
        return real if verb in ("changes", "runs", "rows", "depths", "events") else self._recorded(verb, real)

    def _recorded(self, verb: str, real: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        async def call(*args: Any, **kwargs: Any) -> Any:
            answer = await real(*args, **kwargs)
            self._calls.append((verb, args, kwargs, answer))
            return answer

        return call
