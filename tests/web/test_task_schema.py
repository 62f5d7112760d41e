"""The arguments of a task as JSON Schema, over HTTP: from its code, or from what was published."""

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Annotated, Literal

from rota import Context, Rota, Secret
from rota.domain.spec import TaskSpec
from tests.web.conftest import Caller


class Custom:
    """A type that no schema describes, and that checks itself, as models of pydantic do."""

    @classmethod
    def model_validate(cls, value: object) -> "Custom":
        return cls()


@dataclass
class Place:
    city: str
    country: str = "NO"


async def test_the_schema_says_types_defaults_choices_and_secrets(app: Rota, caller: Caller) -> None:
    @app.task
    async def order(
        ctx: Context,
        item: str,
        size: Literal["s", "l"],
        place: Place,
        many: int = 1,
        at: datetime | None = None,
        file: Path = Path("a"),
        other: Custom | None = None,
        card: Annotated[str, Secret] = "",
        **more: int,
    ) -> None: ...

    found = (await caller("viewer").get("/api/v1/tasks/order/schema")).json()
    assert found["type"] == "object"
    assert (found["required"], found["additionalProperties"]) == (["item", "size", "place"], True)
    parts = found["properties"]
    assert list(parts) == ["item", "size", "place", "many", "at", "file", "other", "card"]
    assert parts["item"] == {"type": "string"}
    assert parts["size"] == {"enum": ["l", "s"]}
    assert parts["many"] == {"type": "integer", "default": 1}
    assert parts["at"] == {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None}
    assert parts["file"] == {"type": "string", "default": "a"}
    assert parts["other"]["anyOf"][0] == {"type": "object", "title": "Custom"}
    assert parts["card"] == {"type": "string", "writeOnly": True}
    assert found["$defs"]["Place"]["required"] == ["city"]
    assert parts["place"] == {"$ref": "#/$defs/Place"}


async def test_a_task_of_another_app_has_the_names_that_were_published(app: Rota, caller: Caller) -> None:
    other = Rota(app.backend)

    @other.task
    async def far(who: str, card: Annotated[str, Secret] = "x") -> None: ...

    async with other:
        pass
    found = (await caller().get("/api/v1/tasks/far/schema")).json()
    assert found["properties"] == {"who": {}, "card": {"writeOnly": True}}


async def test_a_task_without_code_has_the_schema_it_was_declared_with(caller: Caller) -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    assert (await caller().put("/api/v1/tasks/pulled", json={"schema": schema})).status_code == 201
    assert (await caller().get("/api/v1/tasks/pulled/schema")).json() == schema


async def test_a_task_that_nobody_knows_or_may_see_has_none(caller: Caller) -> None:
    assert (await caller().get("/api/v1/tasks/nobody/schema")).status_code == 404
    assert (await caller("submitter:greet").get("/api/v1/tasks/add/schema")).status_code == 404
    assert (await caller("submitter:greet").get("/api/v1/tasks/greet/schema")).status_code == 200


def test_a_spec_without_parameters_takes_anything() -> None:
    from rota.domain.argument_schemas import schema_of_spec

    assert schema_of_spec(TaskSpec("old"))["additionalProperties"] is True
