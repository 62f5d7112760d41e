"""`rota schedules put`: a schedule that no code declares."""

import pytest

from rota import Rota
from rota.domain.spec import TaskSpec
from tests.surfaces.called import Called
from tests.surfaces.timetables import beside, declare, made


def test_a_schedule_is_put_paused(rota: Called) -> None:
    said = rota("schedules", "put", "later", "daily 09:00", "report", "--unknown-ok", "--paused")

    assert said.endswith("it is paused\n")
    assert rota.json("schedules", "show", "later")["state"] == "paused"


def test_a_put_may_want_no_schedule_or_one_version(rota: Called) -> None:
    def put(when: str, *options: str, code: int = 0) -> str:
        rota("schedules", "put", "later", when, "report", "--unknown-ok", *options, code=code)
        return str(rota.json("schedules", "show", "later")["trigger"])

    assert put("daily 09:00", "--if-absent") == "daily 09:00 UTC"
    assert put("daily 10:00", "--if-absent") == "daily 09:00 UTC"
    version = rota.json("schedules", "show", "later")["version"]
    assert put("daily 11:00", "--if-version", str(version)) == "daily 11:00 UTC"
    assert put("daily 12:00", "--if-version", str(version), code=1) == "daily 11:00 UTC"
    assert put("daily 12:00", "--if-version", "0", code=2) == "daily 11:00 UTC"
    assert put("daily 12:00", "--if-version", "2", "--if-absent", code=2) == "daily 11:00 UTC"


def test_a_put_is_checked_against_the_task_of_the_app(rota: Called, monkeypatch: pytest.MonkeyPatch) -> None:
    app = Rota(rota.url, tz="Europe/Paris")

    @app.task(key="{path}", timeout=30)
    def resize(path: str, width: int = 800) -> None: ...

    beside(monkeypatch, app)
    options = ("--overlap", "queue", "--grace", "10m", "--priority", "5", "--start", "2099-01-01T12:00")

    made_first = rota.json("schedules", "put", "thumbs", "daily 09:00", "resize", "path=5", "width=640", *options)
    said = rota("schedules", "put", "thumbs", "every 6h", "resize", "--args", '["a.png"]')
    changed = rota.json("schedules", "show", "thumbs")
    rota("schedules", "put", "thumbs", "every 6h", "resize", code=2)

    assert made_first["args"] == {"path": "5", "width": 640}
    assert (made_first["trigger"], made_first["key"]) == ("daily 09:00 Europe/Paris", "5")
    assert (made_first["overlap"], made_first["grace"], made_first["priority"]) == ("queue", 600, 5)
    assert made_first["start"] == "2099-01-01T11:00:00.000000Z"  # noon in Paris
    assert made_first["next_at"] == "2099-01-02T08:00:00.000000Z"
    assert said.startswith("thumbs calls resize every 6 hours; next ")
    assert (changed["key"], changed["args"], changed["start"]) == ("a.png", {"path": "a.png"}, None)
    assert "missing a required argument: 'path'" in rota.err
    rota("schedules", "put", "thumbs", "every 6h", "resize", "pth=x", code=2)
    assert rota.err == "rota: resize has no argument 'pth'; did you mean path?\n"


def test_a_put_goes_by_what_workers_published(rota: Called) -> None:
    spec = TaskSpec("resize", executor="thread", parameters=("path", "width"), key="{path}", priority=7)
    rota.store(lambda store: store.declare([spec]))

    told = rota.json("schedules", "put", "thumbs", "every 6h", "resize", "--args", '["a.png", 640]')
    rota("schedules", "put", "thumbs", "every 6h", "resize", "--args", "[1, 2, 3]", code=2)

    assert (told["key"], told["priority"], told["args"]) == ("a.png", 7, {"path": "a.png", "width": 640})
    assert "it takes 2 arguments, 3 were given" in rota.err


def test_a_put_of_a_task_that_nobody_knows_is_taken_on_demand(rota: Called) -> None:
    rota.store(lambda store: store.declare([TaskSpec("resize", executor="thread")]))

    rota("schedules", "put", "x", "every 6h", "risize", "n=1", code=2)
    refused = rota.err
    told = rota.json("schedules", "put", "x", "every 6h", "risize", "n=1", "--unknown-ok")
    rota("schedules", "put", "x", "every 6h", "risize", "--args", "[1]", "--unknown-ok", code=2)

    assert "no task risize is defined in app or store; did you mean resize? (--unknown-ok takes any name)" in refused
    assert (told["task"], told["args"]) == ("risize", {"n": 1})
    assert "nothing is known of a task risize, so its arguments need names" in rota.err


@pytest.mark.parametrize(
    ("trigger", "options", "says"),
    [
        ("daily 25:00", (), "hour=25 is not 0 to 23"),
        ("*/0 * * * *", (), "schedule x: "),
        ("daily 09:00", ("--tz", "Europe/Pari"), "did you mean Europe/Paris"),
        ("daily 09:00", ("--grace", "soon"), "--grace: 'soon' is not a duration"),
        ("daily 09:00", ("--start", "soon"), "--start soon: not an ISO 8601 time"),
        ("daily 09:00", ("--catch-up", "all", "--overlap", "skip"), "catch_up='all' wants a run for every tick"),
        ("daily 09:00", ("--priority", "101"), "priority=101"),
        ("daily 09:00", ("--end", "2001-01-01"), "does not fire any more"),
        ("at 2001-01-01T00:00:00Z", (), "does not fire any more"),
        ("daily 09:00", ("--overlap", "sometimes"), "--overlap"),
        ("daily 09:00", ("--url", "memory://"), "memory:// ends with this command"),
    ],
)
def test_a_wrong_put_is_one_sentence_and_exit_2(
    rota: Called, trigger: str, options: tuple[str, ...], says: str
) -> None:
    if "--url" in options:
        rota.url = "memory://"
        options = ()

    rota("schedules", "put", "x", trigger, "greet", *options, "--unknown-ok", code=2)

    assert says in rota.err
    assert rota.err.startswith("rota: ")
    assert rota.err.count("\n") == 1


def test_what_code_declares_is_not_put_over(rota: Called) -> None:
    declare(rota, made("coded", owner="shop"))

    rota("schedules", "put", "coded", "every 6h", "greet", "--unknown-ok", code=2)

    assert "declared by the code of an app, which would change it back" in rota.err
