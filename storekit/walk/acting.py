"""The events that can happen next in a world, and what workers and clients know after each."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from rota.domain import lifecycle
from rota.domain.schedule import Tick
from rota.domain.settlement import Settlement
from rota.store import Claim, ClaimRequest, Command
from storekit.walk.worlds import LEASE, OUTCOMES, STEP, TASK, People, Seat, World

COMMANDS = (Command.CANCEL, Command.PAUSE, Command.RESUME)
SEATS = 2
"""The seats of a worker."""


class Event(NamedTuple):
    """One event. With a `verb`, it is a call of the store; `lost`: the reply is lost."""

    name: str
    verb: str = ""
    args: tuple[Any, ...] = ()
    seat: int = 0
    lost: bool = False

    @property
    def key(self) -> tuple[Any, ...]:
        """The call of the store as a hashable value."""
        return (self.verb, *map(_as_value, self.args))

    def __str__(self) -> str:
        return f"{self.name}{', and the reply is lost' if self.lost else ''}"


def _as_value(arg: Any) -> Any:
    return tuple(arg) if hasattr(arg, "append") else arg


def events(world: World, people: People) -> Iterator[Event]:
    """Yield all events that can happen next. A frozen worker needs no event: nothing happens to it for a while."""
    if people.ticks < world.ticks:
        yield Event("the clock moves")
    for place, new in enumerate(world.news):
        if people.put.count(place) < 1 + (people.lost < world.lost):
            yield Event(f"{new.id} is put", "put", ([new],))
    if people.commands < world.commands:
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
            f"{seat.name} claims again", "claim", (ClaimRequest(seat.name, seat.n, (TASK,), SEATS, LEASE),), place
        )
    elif len(seat.leased) < SEATS:
        free = SEATS - len(seat.leased)
        yield Event(f"{seat.name} claims", "claim", (ClaimRequest(seat.name, seat.n + 1, (TASK,), free, LEASE),), place)
    for run in seat.leased:
        for outcome in OUTCOMES:
            settlement = lifecycle.settlement_of(run, outcome)
            yield Event(
                f"{seat.name} settles {run.id}/{run.fence} {settlement.outcome}", "settle", ([settlement],), place
            )
    if seat.leased:
        yield Event(f"{seat.name} renews", "renew", ([run.lease for run in seat.leased], LEASE), place)
    if seat.unsure:
        yield Event(f"{seat.name} settles again", "settle", (list(seat.unsure),), place)
    if seat.lapsed:
        lost = [lifecycle.settlement_of(run, lifecycle.Lost()) for run in seat.lapsed]
        yield Event(f"{seat.name} rescues", "settle", (lost,), place)
    if seat.due:
        yield Event(f"{seat.name} fires", "fire", ([tick(world, seat)],), place)
    if people.crashes < world.crashes and (seat.leased or seat.unheard or seat.unsure or seat.lapsed or seat.due):
        yield Event(f"{seat.name} crashes", seat=place)


def tick(world: World, seat: Seat) -> Tick:
    """Return the only tick of the schedule, which ends after it."""
    schedule = seat.due[0]
    return Tick(schedule.id, schedule.version, schedule.next_at, None, None, (world.made,), (0.0,))


def learn(world: World, people: People, event: Event, answer: Any) -> People:
    """Return what workers and clients know after an event. They hear `answer` unless the reply is lost."""
    people = people._replace(lost=people.lost + event.lost)
    if not event.verb:
        return _without_store(people, event)
    if event.verb == "control":
        return people._replace(commands=people.commands + 1)
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
    seats[event.seat] = Seat(seats[event.seat].name + "'")  # the worker that replaces it has a new name
    return people._replace(seats=tuple(seats), crashes=people.crashes + 1)


def _after_claim(seat: Seat, people: People, event: Event, claim: Claim) -> tuple[Seat, People]:
    n = event.args[0].n
    if event.lost:
        return seat._replace(n=n, unheard=True), people
    new = [
        run for run in claim.runs if (run.id, run.fence) not in [(leased.id, leased.fence) for leased in seat.leased]
    ]
    called = (*people.called, *((run.id, run.fence) for run in new))
    lapsed = tuple(claim.lapsed) or seat.lapsed
    due = tuple(claim.schedules) or seat.due
    seat = seat._replace(n=n, unheard=False, leased=(*seat.leased, *new), lapsed=lapsed, due=due)
    return seat, people._replace(called=called)


def _after_settle(seat: Seat, people: People, event: Event, verdicts: list[str]) -> tuple[Seat, People]:
    settlements: list[Settlement] = event.args[0]
    applied = [one for one, verdict in zip(settlements, verdicts, strict=True) if verdict == "applied"]
    people = people._replace(applied=(*people.applied, *applied))
    ended = [(one.run, one.fence) for one in settlements if not one.lost]
    seat = seat._replace(leased=tuple(run for run in seat.leased if (run.id, run.fence) not in ended))
    if settlements[0].lost:
        return (seat if event.lost else seat._replace(lapsed=())), people
    if event.lost:
        return seat._replace(unsure=tuple(dict.fromkeys((*seat.unsure, *settlements)))), people
    return seat._replace(unsure=tuple(one for one in seat.unsure if one not in settlements)), people


def moved(now: float, event: Event) -> float:
    return now + STEP if event.name == "the clock moves" else now
