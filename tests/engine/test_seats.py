"""Seats: which leases a worker renews, and what the answers to a renewal do to its handlers."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from rota.domain.run import Lease, Run
from rota.engine.context import Context
from rota.engine.seats import Seat, Seats, Stop
from rota.store import Renewal


def taken(seats: Seats, id: str) -> Seat:
    run = Run(id=id, task="greet", fence=1, worker="w")
    seat = Seat(run, Context(run), deadline=10.0)
    seats.take(seat)
    return seat


def test_a_lease_is_renewed_from_its_start_until_its_ending_is_recorded() -> None:
    seats = Seats("w", 2)
    seat = taken(seats, "a")
    assert (seats.leases(), seats.unsettled(), seats.free) == ([seat.lease], [seat.lease], 1)
    seats.record(seat.lease)
    assert seats.unsettled() == [seat.lease], "once, although it is in hand and on its way to the store"
    seats.leave(seat)
    assert (seats.leases(), seats.unsettled(), seats.free) == ([], [seat.lease], 2)
    seats.recorded([seat.lease])
    assert seats.unsettled() == []
    seats.recorded([Lease("of another worker", 1, "x")])  # a rescued run: it was never in hand here


class Interrupted(dict[Lease, Any]):
    """A dict whose reader is interrupted right after it has read."""

    def __init__(self, content: dict[Lease, Any], meanwhile: Callable[[], None]) -> None:
        super().__init__(content)
        self.meanwhile = meanwhile

    def __iter__(self) -> Iterator[Lease]:
        yield from list(self.keys())
        self.meanwhile()


def test_a_run_that_ends_while_another_thread_reads_the_leases_is_among_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """The heart reads two dicts without a lock: a lease that it missed would lapse before its ending is recorded."""
    seats = Seats("w", 1)
    seat = taken(seats, "a")

    def end() -> None:
        if seat.lease in seats:
            seats.record(seat.lease)
            seats.leave(seat)

    for name, content in (("_taken", {seat.lease: seat}), ("_unrecorded", {})):
        monkeypatch.setattr(seats, name, Interrupted(content, end))
    assert seats.unsettled() == [seat.lease]
    assert seats.leases() == [], "the run has ended while its lease was read"


@pytest.mark.parametrize(
    ("answer", "stop"),
    [
        (Renewal.OK, None),
        (Renewal.CANCEL, Stop.CANCEL),
        (Renewal.PAUSE, Stop.PAUSE),
        (Renewal.LOST, Stop.LOST),
    ],
)
def test_a_renewal_moves_the_deadline_and_stops_handlers(answer: Renewal, stop: Stop | None) -> None:
    seats = Seats("w", 2)
    seat, gone = taken(seats, "a"), taken(seats, "b")
    leases = seats.unsettled()
    seats.leave(gone)  # while the renewal is under way
    seats.renewed(leases, [answer, Renewal.OK], 99.0, {})
    assert (seat.deadline, seat.stop) == (99.0, stop)
    assert gone.deadline == 10.0


def test_a_note_is_carried_once_and_a_newer_one_again() -> None:
    seats = Seats("w", 1)
    seat = taken(seats, "a")
    seat.context.progress(0.5)
    notes = seats.notes()
    seat.context.progress(0.7)  # while the renewal is under way
    seats.renewed([seat.lease], [Renewal.OK], 99.0, notes)
    ((note, _),) = seats.notes().values()
    assert note.progress is not None
    assert note.progress.share == 0.7
    seats.renewed([seat.lease], [Renewal.OK], 99.0, seats.notes())
    assert seats.notes() == {}


async def test_seats_are_empty_before_the_first_run_and_after_the_last() -> None:
    seats = Seats("w", 1)
    assert await seats.emptied(0)
    seat = taken(seats, "a")
    assert not await seats.emptied(0)
    seats.leave(seat)
    assert await seats.emptied(0)
