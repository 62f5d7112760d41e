"""`rota call`: the function itself, here and now."""

import uuid
from pathlib import Path

import pytest

from rota import Context, NotRunning
from tests.surfaces.called import Called

APP = """
from pathlib import Path

from rota import Context, Rota, status_dict

app = Rota()


@app.task
async def greet(name: str, times: int = 1) -> str:
    return f"hello {name}" * times


@app.task
def parts(path: Path, *, deep: bool = False) -> dict[str, object]:
    return {"name": path.name, "deep": deep}


@app.task(key="{name}", aliases=["old"])
def told(ctx: Context, name: str) -> list[object]:
    ctx.progress(0.5, "halfway")
    ctx.checkpoint({"page": 1})
    ctx.warn("mind the gap")
    return [ctx.attempt, ctx.fence, ctx.run.key, ctx.saved, ctx.stopping]


@app.task
def trip(message: str) -> None:
    raise ValueError(message)


@app.task
def odd() -> object:
    return object()


@app.task(fail_on=status_dict)
def graded(status: str) -> dict[str, str]:
    return {"status": status, "message": "no data"}


@app.task
def relay() -> str:
    return greet.submit_sync("Ada").id
"""


@pytest.fixture
def call(rota: Called, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Called:
    module = f"app_{uuid.uuid4().hex}"
    (tmp_path / f"{module}.py").write_text(APP)
    monkeypatch.setenv("ROTA_APP", f"{module}:app")
    return rota


def test_a_result_comes_as_json_and_nothing_is_stored(call: Called, tmp_path: Path) -> None:
    (tmp_path / "rota.db").unlink()
    assert call("call", "greet", "name=Ada", "times=2") == '"hello Adahello Ada"\n'
    assert call.json("call", "parts", "path=a/b.png", "deep=true") == {"name": "b.png", "deep": True}
    assert call.json("call", "greet", "--args", '["5"]') == "hello 5"
    assert not (tmp_path / "rota.db").exists()


def test_a_context_is_there_and_its_notes_are_told(call: Called) -> None:
    assert call.json("call", "old", "name=Ada") == [1, 1, "Ada", {"page": 1}, False]
    assert call.err == " 50%  halfway\nwarning: mind the gap\n"


def test_the_context_ends_with_the_call(call: Called) -> None:
    call("call", "told", "name=Ada")
    with pytest.raises(NotRunning):
        Context.current()


def test_what_the_function_raises_is_told_with_its_traceback(call: Called) -> None:
    assert call("call", "trip", "message=over a stone", code=1) == ""

    first, place, *_, last = call.err.splitlines()
    assert first.startswith("Traceback")
    assert "in trip" in place
    assert last == "ValueError: over a stone"


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["gret"], 2, "no task gret is defined in the app; did you mean greet?"),
        (["greet", "name=Ada", "times=often"], 2, "Expected `int`, got `str`"),
        (["greet"], 2, "missing a required argument: 'name'"),
        (["odd"], 1, "odd returned what cannot be stored as JSON"),
    ],
)
def test_what_cannot_be_called_is_one_sentence(call: Called, arguments: list[str], code: int, says: str) -> None:
    call("call", *arguments, code=code)

    assert says in call.err
    assert call.err.count("\n") == 1


def test_a_function_may_submit(call: Called) -> None:
    id = call.json("call", "relay")

    assert call.json("runs", "show", id)["args"] == {"name": "Ada"}


def test_a_returned_failure_is_shown_and_exits_with_1(call: Called) -> None:
    assert call("call", "graded", "status=failed", code=1) == '{"status": "failed", "message": "no data"}\n'
    assert call.err == "failed: no data\n"
    call("call", "graded", "status=skipped")
    call("call", "graded", "status=success")
