"""Settings: overrides of single tasks."""

import pytest
from msgspec import UNSET

from rota import Rota
from rota.app.core import core_of
from rota.domain.policy import Limit, Rate, Retry
from rota.errors import InvalidOptions
from rota.settings import LimitOverride, RateOverride, RetryOverride, TaskOverride, explain, load, unknown_tasks
from rota.task import TaskOptions
from tests.surfaces.settings.asked import Write, refusal

RESIZE = """
[tasks.resize]
enabled = false
timeout = "5m"
priority = 5
description = "Makes pictures small."
max_pending = 100
max_losses = 2
lost = "fail"
retry = {limit = 3, backoff = "linear", delay = "2s", max_delay = "1h", jitter = 0.5}
limit = {total = 4, per_key = 1}
rate = {n = 10, per = "1m", burst = 2, per_key = true}
"""

RESIZED = TaskOverride(
    enabled=False,
    timeout=300.0,
    priority=5,
    description="Makes pictures small.",
    max_pending=100,
    max_losses=2,
    lost="fail",
    retry=RetryOverride(limit=3, backoff="linear", delay=2.0, max_delay=3600.0, jitter=0.5),
    limit=LimitOverride(total=4, per_key=1),
    rate=RateOverride(n=10, per=60.0, burst=2, per_key=True),
)


RULES: dict[type[BaseException], Retry] = {KeyError: Retry(0)}
CODE: TaskOptions = {"timeout": 30.0, "retry": Retry(5, delay=7.0, rules=RULES), "key": "{path}"}
"""The options of a task as its code gives them."""


def test_a_task_is_changed_in_rota_toml(rota_toml: Write) -> None:
    rota_toml(RESIZE)

    assert load().tasks == {"resize": RESIZED}


def test_a_task_is_changed_in_pyproject(pyproject: Write) -> None:
    pyproject(RESIZE.replace("[tasks.", "[tool.rota.tasks."))

    assert load().tasks == {"resize": RESIZED}


def test_a_task_is_changed_by_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for field, text in {
        "ENABLED": "false",
        "TIMEOUT": "5m",
        "RETRY__LIMIT": "3",
        "RETRY__DELAY": "2s",
        "LIMIT__PER_KEY": "1",
        "RATE__PER_KEY": "yes",
        "MAX_LOSSES": "2",
    }.items():
        monkeypatch.setenv(f"ROTA_TASKS__RESIZE__{field}", text)

    assert load().tasks == {
        "resize": TaskOverride(
            enabled=False,
            timeout=300.0,
            max_losses=2,
            retry=RetryOverride(limit=3, delay=2.0),
            limit=LimitOverride(per_key=1),
            rate=RateOverride(per_key=True),
        )
    }


def test_what_is_not_said_is_unset(rota_toml: Write) -> None:
    rota_toml("[tasks.resize]\nenabled = false\nretry = {delay = 2}")
    override = load().tasks["resize"]

    assert (override.timeout, override.limit, override.lost) == (UNSET, UNSET, UNSET)
    assert override.retry == RetryOverride(delay=2.0)


def test_a_bare_number_is_what_it_is_in_code(rota_toml: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    rota_toml("[tasks.resize]\nretry = 3\nlimit = 4")
    monkeypatch.setenv("ROTA_TASKS__RESIZE__RATE", "10")
    options = load().override("resize").over(TaskOptions())

    assert options == {"retry": Retry(3), "limit": Limit(4), "rate": Rate(10)}


def test_only_what_is_said_changes_in_the_options_of_a_task(rota_toml: Write) -> None:
    rota_toml("[tasks.resize]\npriority = 5\nretry = 3\nlimit.per_key = 1")
    code: TaskOptions = {**CODE, "limit": Limit(total=9)}
    options = load().override("resize").over(code)

    assert options == {
        **CODE,
        "priority": 5,
        "retry": Retry(3, delay=7.0, rules=RULES),
        "limit": Limit(total=9, per_key=1),
    }
    assert load().override("greet").over(code) == code


def test_a_rate_out_of_nothing_needs_its_n(rota_toml: Write) -> None:
    rota_toml('[tasks.resize]\nrate.per = "1m"')
    override = load().override("resize")

    assert override.over(TaskOptions(rate=Rate(5))) == {"rate": Rate(5, per=60.0)}
    with pytest.raises(InvalidOptions, match="say its n as well"):
        override.over(TaskOptions())


def test_each_field_of_an_override_has_its_own_winner(
    rota_toml: Write, pyproject: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    pyproject("[tool.rota.tasks.resize]\npriority = 1\ntimeout = 1\nretry.delay = 1")
    rota_toml("[tasks.resize]\npriority = 2\nretry = 2")
    monkeypatch.setenv("ROTA_TASKS__RESIZE__RETRY__LIMIT", "4")
    settings = load()

    assert settings.tasks["resize"] == TaskOverride(priority=2, timeout=1.0, retry=RetryOverride(limit=4, delay=1.0))
    assert explain(settings)[-4:] == [
        ("tasks.resize.timeout", 1.0, "pyproject.toml"),
        ("tasks.resize.priority", 2, "rota.toml"),
        ("tasks.resize.retry.limit", 4, "ROTA_TASKS__RESIZE__RETRY__LIMIT"),
        ("tasks.resize.retry.delay", 1.0, "pyproject.toml"),
    ]


@pytest.mark.parametrize("name", ["send_mail", "send-mail", "Send-Mail", "send.mail"])
def test_a_variable_spells_a_task_without_case_and_punctuation(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROTA_TASKS__SEND_MAIL__ENABLED", "false")
    settings = load()

    assert settings.override(name) == TaskOverride(enabled=False)
    assert unknown_tasks(settings, [name]) == []


def test_a_variable_meets_the_task_that_a_file_names(rota_toml: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    rota_toml("[tasks.Send-Mail]\npriority = 3\nenabled = true")
    monkeypatch.setenv("ROTA_TASKS__SEND_MAIL__ENABLED", "false")
    settings = load()

    assert settings.override("Send-Mail") == TaskOverride(priority=3, enabled=False)
    assert unknown_tasks(settings, ["Send-Mail"]) == []


def test_a_file_names_a_task_exactly(rota_toml: Write) -> None:
    rota_toml("[tasks.send_mail]\nenabled = false")

    assert load().override("send-mail") == TaskOverride()
    assert load().override("send_mail") == TaskOverride(enabled=False)


@pytest.mark.parametrize("name", ["a__b", "a_", "_a", "retry", "a__retry"])
def test_underscores_in_a_tasks_name_do_not_mislead_a_variable(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(f"ROTA_TASKS__{name.upper()}__ENABLED", "false")

    assert load().override(name) == TaskOverride(enabled=False)


def test_a_dotted_name_needs_quotes(rota_toml: Write) -> None:
    rota_toml("[tasks.mail.send]\nenabled = false")
    assert 'write [tasks."mail.send"]' in refusal()
    rota_toml('[tasks."mail.send"]\nenabled = false')
    assert load().override("mail.send").enabled is False


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("timeout = 0", "timeout=0.0: more than 0 seconds"),
        ("priority = 101", "priority=101"),
        ("max_pending = 0", "max_pending=0: at least 1"),
        ("max_losses = 0", "max_losses=0: at least 1"),
        ("retry = -1", "Retry(limit=-1)"),
        ("retry.jitter = 2", "Retry(jitter=2.0)"),
        ("limit.total = 0", "Limit(total=0)"),
        ("rate.n = 0", "Rate(0)"),
        ("rate.per = 0", "Rate(per=0.0)"),
    ],
)
def test_an_override_that_cannot_be_is_refused_at_start(line: str, said: str, rota_toml: Write) -> None:
    rota_toml(f"[tasks.resize]\n{line}")

    assert f"rota.toml: task resize: {said}" in refusal()


def test_overrides_of_tasks_that_do_not_exist_are_warned_of(rota_toml: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    rota_toml("[tasks.resze]\nenabled = false\n[tasks.greet]\nenabled = false")
    monkeypatch.setenv("ROTA_TASKS__ZZZ__ENABLED", "false")
    settings = load()

    assert unknown_tasks(settings, ["resize", "greet"]) == [
        "rota.toml: there is no task resze; did you mean resize?",
        "ROTA_TASKS__ZZZ__ENABLED: there is no task zzz; there are: greet, resize",
    ]
    assert unknown_tasks(settings, ["resize", "greet", "resze", "zzz"]) == []
    assert "no tasks are defined" in unknown_tasks(settings, [])[0]


def test_an_operator_can_move_a_schedule(rota_toml: Write) -> None:
    rota_toml('[tasks.nightly]\nschedule = "daily 04:30"\ncatch_up = "skip"\ngrace = "10m"\n')
    app = Rota("memory://")
    app.task(name="nightly", schedule="daily 03:00")(lambda: None)
    (schedule,) = core_of(app).registry.declared()
    assert (schedule.trigger, schedule.catch_up, schedule.grace) == ("daily 04:30 UTC", "skip", 600.0)


def test_a_schedule_that_cannot_be_read_is_refused_where_it_stands(rota_toml: Write) -> None:
    rota_toml('[tasks.nightly]\nschedule = "daily 25:00"\n')
    with pytest.raises(InvalidOptions, match=r"rota\.toml"):
        load()
