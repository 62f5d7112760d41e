"""What can happen next in a world, and what people learn from it."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from rota.domain import lifecycle
from rota.domain.schedule import Tick
from rota.domain.settlement import Settlement
from rota.store import Claim, ClaimRequest, Command
from storekit.walk.worlds import LEASE, OUTCOMES, STEP, TASK, People, Seat, World

COMMANDS = (Command.CANCEL, Command.PAUSE, Command.RESUME)
SEATS = 2
"""Runs that a worker holds at most."""


class Event(NamedTuple):
    """One thing that happens. With a `verb`, the store is asked; `lost` says that the reply gets lost."""

    name: str
    verb: str = ""
    args: tuple[Any, ...] = ()
    seat: int = 0
    lost: bool = False

    @property
    def key(self) -> tuple[Any, ...]:
        """What the store is asked, as a value."""
        return (self.verb, *map(_as_value, self.args))

    def __str__(self) -> str:
        return f"{self.name}{', and the reply is lost' if self.lost else ''}"


def _as_value(arg: Any) -> Any:
    return tuple(arg) if hasattr(arg, "append") else arg


def events(world: World, people: People) -> Iterator[Event]:
    """All that can happen next. A worker that is frozen is one to which nothing happens for a while."""
    if people.ticks < world.ticks:
        yield Event("the clock moves")
    for place, new in enumerate(world.news):
        if people.put.count(place) < 1 + (people.lost < world.lost):
            yield Event(f"{new.id} is put", "put", ([new],))
    if people.asks < world.asks:
        for id in [*(world.news[place].id for place in dict.fromkeys(people.put)), world.made.id][
            : len({*people.put}) + people.fired
        ]:
            for command in COMMANDS:
                yield Event(f"{command} {id}", "control", (command, [id]))
    for place, seat in enumerate(people.seats):
        for event in _of_worker(world, people, seat, place):
            yield event
            if event.verb in ("claim", "settle", "fire") and people.lost < world.lost:
                yield event._replace(lost=True)


def _of_worker(world: World, people: People, seat: Seat, place: int) -> Iterator[Event]:
    if seat.unheard:
        yield Event(
            f"{seat.name} claims again", "claim", (ClaimRequest(seat.name, seat.n, [TASK], SEATS, LEASE),), place
        )
    elif len(seat.held) < SEATS:
        free = SEATS - len(seat.held)
        yield Event(f"{seat.name} claims", "claim", (ClaimRequest(seat.name, seat.n + 1, [TASK], free, LEASE),), place)
    for run in seat.held:
        for outcome in OUTCOMES:
            said = lifecycle.settlement_of(run, outcome)
            yield Event(f"{seat.name} settles {run.id}/{run.fence} {said.outcome}", "settle", ([said],), place)
    if seat.held:
        yield Event(f"{seat.name} renews", "renew", ([run.lease for run in seat.held], LEASE), place)
    if seat.unsure:
        yield Event(f"{seat.name} settles again", "settle", (list(seat.unsure),), place)
    if seat.lapsed:
        said_lost = [lifecycle.settlement_of(run, lifecycle.Lost()) for run in seat.lapsed]
        yield Event(f"{seat.name} rescues", "settle", (said_lost,), place)
    if seat.due:
        yield Event(f"{seat.name} fires", "fire", ([tick(world, seat)],), place)
    if people.crashes < world.crashes and (seat.held or seat.unheard or seat.unsure or seat.lapsed or seat.due):
        yield Event(f"{seat.name} crashes", seat=place)


def tick(world: World, seat: Seat) -> Tick:
    """The only tick of the schedule; then it is over."""
    schedule = seat.due[0]
    return Tick(schedule.id, schedule.version, schedule.next_at, None, None, (world.made,), (0.0,))


def learn(world: World, people: People, event: Event, answer: Any) -> People:
    """What people know after the event. `answer` is what the store says; they hear it unless the reply is lost."""
    people = people._replace(lost=people.lost + event.lost)
    if not event.verb:
        return _without_store(people, event)
    if event.verb == "control":
        return people._replace(asks=people.asks + 1)
    if event.verb == "put":
        place = world.news.index(event.args[0][0])
        again = place in people.put
        return people._replace(put=tuple(sorted((*people.put, place))), lost=people.lost + again)
    seat = people.seats[event.seat]
    if event.verb == "claim":
        seat, people = _after_claim(seat, people, event, answer)
    elif event.verb == "settle":
        seat, people = _after_settle(seat, people, event, answer.items)
    elif event.verb == "fire":
        people = people._replace(fired=people.fired + answer.items[0].applied)
        seat = seat if event.lost else seat._replace(due=())
    seats = list(people.seats)
    seats[event.seat] = seat
    return people._replace(seats=tuple(seats))


def _without_store(people: People, event: Event) -> People:
    if event.name == "the clock moves":
        return people._replace(ticks=people.ticks + 1)
    seats = list(people.seats)
    seats[event.seat] = Seat(seats[event.seat].name + "'")  # who takes its place has a name of its own
    return people._replace(seats=tuple(seats), crashes=people.crashes + 1)


def _after_claim(seat: Seat, people: People, event: Event, claim: Claim) -> tuple[Seat, People]:
    n = event.args[0].n
    if event.lost:
        return seat._replace(n=n, unheard=True), people
    new = [run for run in claim.runs if (run.id, run.fence) not in [(held.id, held.fence) for held in seat.held]]
    called = (*people.called, *((run.id, run.fence) for run in new))
    lapsed = tuple(claim.lapsed) or seat.lapsed
    due = tuple(claim.schedules) or seat.due
    seat = seat._replace(n=n, unheard=False, held=(*seat.held, *new), lapsed=lapsed, due=due)
    return seat, people._replace(called=called)


def _after_settle(seat: Seat, people: People, event: Event, verdicts: list[str]) -> tuple[Seat, People]:
    said: list[Settlement] = event.args[0]
    applied = [one for one, verdict in zip(said, verdicts, strict=True) if verdict == "applied"]
    people = people._replace(applied=(*people.applied, *applied))
    ended = [(one.run, one.fence) for one in said if not one.lost]
    seat = seat._replace(held=tuple(run for run in seat.held if (run.id, run.fence) not in ended))
    if said[0].lost:
        return (seat if event.lost else seat._replace(lapsed=())), people
    if event.lost:
        return seat._replace(unsure=tuple(dict.fromkeys((*seat.unsure, *said)))), people
    return seat._replace(unsure=tuple(one for one in seat.unsure if one not in said)), people


def moved(now: float, event: Event) -> float:
    return now + STEP if event.name == "the clock moves" else now
