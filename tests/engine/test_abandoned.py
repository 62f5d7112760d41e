"""A call whose coroutine is closed because nobody runs it any more says nothing about its handler."""

import math
from collections.abc import Generator

import pytest

from rota.domain import codec
from rota.domain.arguments import Signature
from rota.domain.policy import Policy
from rota.domain.run import Origin, Run
from rota.engine.context import Context
from rota.engine.handler import Handler
from rota.engine.runner import Runner
from rota.engine.seats import Seat


class Nothing:
    """Awaited, it comes back to whoever runs the coroutine, without any event loop."""

    def __await__(self) -> Generator[None]:
        yield


def test_a_call_that_is_thrown_away_with_its_loop_has_no_outcome() -> None:
    async def forever() -> None:
        await Nothing()

    handler = Handler(name="forever", fn=forever, signature=Signature(forever), executor="loop")
    run = Run(id="r", task="forever", body=codec.encode(b"{}", Origin(), Policy()))
    call = Runner({"forever": handler}).outcome(Seat(run, Context(run), math.inf))
    call.send(None)
    with pytest.raises(GeneratorExit):  # an outcome would raise StopIteration here
        call.throw(GeneratorExit)
