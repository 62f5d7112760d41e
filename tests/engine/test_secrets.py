"""Secrets: `Annotated[str, Secret]` hides a value from people at any depth; handlers get it."""

import logging
from dataclasses import dataclass
from typing import Annotated

import msgspec
import pytest

from rota import InvalidOptions, Rota, Secret, State
from rota.domain.secrets import secret_names
from rota.task import definition_of
from rota.views.runs import logs_view, result_view, run_view
from rota.views.schedules import args_of
from tests.web.conftest import Caller
from tests.web.conftest import caller as caller

CARD, PIN = "4000-1234-5678", "90'12"
Hidden = Annotated[str, Secret]


@dataclass
class Person:
    name: str
    pin: Hidden
    friends: "list[Person]"


class Receipt(msgspec.Struct, rename="camel"):
    order_id: int
    paid_with: Hidden


@pytest.fixture
def app() -> Rota:
    app = Rota("memory://")

    @app.task
    def pay(card: Hidden, person: Person, notes: dict[str, list[Hidden]] | None = None) -> Receipt:
        logging.getLogger("shop").info("paying")
        if person.name == "nobody":
            raise ValueError(f"no card {card!r}, no pin {person.pin!r} of {person!r}")
        return Receipt(7, card)

    @app.task
    def secret_word(seed: int) -> Hidden:
        return f"word-{seed}"

    return app


def arguments(name: str = "ada") -> dict[str, object]:
    friend = Person("bob", PIN, [])
    return {"card": CARD, "person": Person(name, PIN, [friend]), "notes": {"a": ["quiet"]}}


async def test_people_see_no_secret_at_any_depth_and_handlers_get_it(app: Rota, caller: Caller) -> None:
    run = await app.tasks["pay"].submit(**arguments())
    word = await app.tasks["secret_word"].submit(1)
    async with app:
        assert (await run.result()).paid_with == CARD, "programs get the value"
        assert await word.result() == "word-1"
    seen = await run.refresh()
    view = run_view(seen)
    assert view["args"] == {
        "card": "***",
        "person": {"name": "ada", "pin": "***", "friends": [{"name": "bob", "pin": "***", "friends": []}]},
        "notes": "***",
    }
    assert (view["result"], result_view(await word.refresh())) == ({"orderId": 7, "paidWith": "***"}, "***")
    http = caller("admin")  # read:payload does not lift it
    for path in (f"/api/v1/runs/{run.id}", f"/api/v1/runs/{run.id}/result", f"/api/v1/runs/{word.id}/result"):
        text = (await http.get(path)).text
        assert not any(secret in text for secret in (CARD, PIN, "quiet", "word-1")), path
    patched = await http.patch(f"/api/v1/runs/{run.id}", json={"args": {"card": "***"}})
    assert patched.status_code == 422, "the mask does not come back as a value"


async def test_errors_and_log_lines_have_no_secret(app: Rota, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    run = await app.tasks["pay"].submit(**arguments("nobody"))
    async with app:
        await app.client().ended(run.id)
    failed = await run.refresh()
    assert failed.state is State.FAILED
    assert failed.error is not None
    assert failed.error.message.startswith("no card '***', no pin")
    for text in (failed.error.message, failed.error.traceback, str(failed.attempts), caplog.text):
        assert CARD not in text
        assert PIN not in text


async def test_texts_hide_what_names_say_is_a_secret(app: Rota, caplog: pytest.LogCaptureFixture) -> None:
    """As the arguments do: nobody has to mark a password. A number is rather a count than a secret."""
    caplog.set_level(logging.INFO)

    @app.task(logs=True)
    def log_in(user: str, password: str, options: dict[str, object], max_tokens: int = 4096) -> None:
        logging.getLogger("shop").warning("trying %s", password)
        raise ValueError(f"{user} with {password}, {options} and {max_tokens} is refused")

    options = {"api_key": {"value": "AKIA-99-11"}, "retries": 1000}
    run = await app.tasks["log_in"].submit("ada", "tr0ub4dor", options)
    async with app:
        await app.client().ended(run.id)
    failed = await run.refresh()
    assert failed.error is not None
    words = "ada with ***, {'api_key': {'value': '***'}, 'retries': 1000} and 4096 is refused"
    assert failed.error.message == words
    attempt = failed.attempts[-1]
    rota_says = "".join(record.getMessage() for record in caplog.records if record.name == "rota")
    assert "is refused" in rota_says
    for text in (failed.error.traceback, str(attempt), str(logs_view(failed)), rota_says):
        assert "tr0ub4dor" not in text
        assert "AKIA-99-11" not in text
    assert "trying ***" in str(logs_view(failed))


async def test_a_retry_a_schedule_and_a_submit_by_name_hide_the_same(app: Rota) -> None:
    async with app.client():
        bound = app.tasks["pay"].bind(**arguments())
        assert args_of(await app.schedules.put("s", "daily 09:00", bound))["card"] == "***"  # type: ignore[index]
        run = await app.tasks["pay"].submit(**arguments())
        await run.cancel()
        assert run_view(await (await run.retry()).refresh())["args"]["card"] == "***"  # type: ignore[index]
        await app.client().declare([definition_of(app.tasks["pay"]).spec])
        there = Rota(app.backend)
        found = await there.submit("pay", **msgspec.to_builtins(arguments()))
        assert run_view(await found.refresh())["args"]["card"] == "***"  # type: ignore[index]


def test_a_key_shows_no_secret(app: Rota) -> None:
    with pytest.raises(InvalidOptions, match="would show the secret card"):

        @app.task(key="{card}")
        def other(card: Hidden) -> None: ...


def test_names_are_found_in_the_types_of_the_code() -> None:
    assert secret_names({"a": int, "b": Person, "return": Receipt}) == ("paidWith", "pin")
    assert secret_names({"a": list[Hidden], "b": Hidden | None, "c": dict[str, int]}) == ("a", "b")
