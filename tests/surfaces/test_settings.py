"""Settings: who wins, what is refused and in which words, and where each value came from."""

import logging
import os
from collections.abc import Callable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from msgspec import UNSET, Struct

from rota.domain.policy import Limit, Rate, Retry
from rota.errors import InvalidOptions
from rota.settings import (
    LimitOverride,
    RateOverride,
    RetryOverride,
    Settings,
    TaskOverride,
    app_reference,
    default_url,
    explain,
    load,
    masked,
    project_folder,
    unknown_tasks,
)
from rota.store import Retention


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project of nothing but an empty pyproject.toml, and no variable of ours."""
    for name in [name for name in os.environ if name.startswith("ROTA_")]:
        monkeypatch.delenv(name)
    (tmp_path / "pyproject.toml").touch()
    monkeypatch.chdir(tmp_path)
    return tmp_path


Write = Callable[[str], None]


@pytest.fixture
def rota_toml(folder: Path) -> Write:
    return lambda text: _write(folder / "rota.toml", text)


@pytest.fixture
def pyproject(folder: Path) -> Write:
    return lambda text: _write(folder / "pyproject.toml", text)


def _write(file: Path, text: str) -> None:
    file.write_text(text, encoding="utf-8")


def refusal(**keywords: object) -> str:
    """The one sentence with which these settings are refused."""
    with pytest.raises(InvalidOptions) as caught:
        load(**keywords)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def source(name: str, **keywords: object) -> str:
    return {row[0]: row[2] for row in explain(load(**keywords))}[name]


# -- who wins ------------------------------------------------------------------------------------------------------


def test_where_nothing_is_said_the_defaults_of_the_design_hold(folder: Path) -> None:
    settings = load()

    assert settings == Settings()
    assert settings.url == f"sqlite:///{folder}/.rota/rota.db"
    assert (settings.app, settings.name) == (None, "rota")
    assert (settings.enabled, settings.debug, settings.tasks) == (True, False, {})
    assert (settings.concurrency, settings.lease, settings.grace, settings.sweep) == (10, 30, 30, 60)
    assert (settings.renew, settings.rescue) == (0, 0)
    assert settings.retention == Retention() == Retention(succeeded=86_400, failed=604_800, most=10_000, least=50)
    assert {row[2] for row in explain(settings)} == {"default"}


def test_each_level_wins_over_the_ones_below(
    rota_toml: Write, pyproject: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[float, str]] = []

    def look(**keywords: object) -> None:
        seen.append((load(**keywords).lease, source("lease", **keywords)))

    look()
    pyproject("[tool.rota]\nlease = 31")
    look()
    rota_toml("lease = 32")
    look()
    monkeypatch.setenv("ROTA_LEASE", "33")
    look()
    look(lease=34)

    assert seen == [(30, "default"), (31, "pyproject.toml"), (32, "rota.toml"), (33, "ROTA_LEASE"), (34, "keyword")]


def test_a_keyword_of_none_and_an_empty_variable_say_nothing(rota_toml: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    rota_toml('lease = 40\nname = "mail"')
    monkeypatch.setenv("ROTA_NAME", "")

    assert (load(lease=None).lease, load().name) == (40, "mail")


def test_a_keyword_of_false_or_zero_says_something(rota_toml: Write) -> None:
    rota_toml("enabled = true\ngrace = 5")
    settings = load(enabled=False, grace=0)

    assert (settings.enabled, settings.grace) == (False, 0)


def test_both_files_are_read_and_rota_toml_wins_where_both_speak(
    rota_toml: Write, pyproject: Write, caplog: pytest.LogCaptureFixture
) -> None:
    pyproject('[tool.rota]\napp = "tasks:app"\nlease = 31')
    rota_toml("lease = 32\ngrace = 5")

    with caplog.at_level(logging.DEBUG, "rota"):
        settings = load()

    assert (settings.app, settings.lease, settings.grace) == ("tasks:app", 32, 5)
    assert [record.levelname for record in caplog.records] == ["DEBUG"]
    assert "rota.toml wins over pyproject.toml" in caplog.text
    assert "both say: lease" in caplog.text


def test_the_project_file_is_found_from_a_folder_below(
    rota_toml: Write, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rota_toml("concurrency = 3")
    (folder / "src" / "deep").mkdir(parents=True)
    monkeypatch.chdir(folder / "src" / "deep")

    assert project_folder() == folder
    assert load().concurrency == 3
    assert load().url == f"sqlite:///{folder}/.rota/rota.db"


def test_a_pyproject_of_other_tools_says_nothing(pyproject: Write) -> None:
    pyproject('[project]\nname = "x"\n[tool.ruff]\nline-length = 120')

    assert load() == Settings()


def test_the_command_line_finds_app_and_store_through_the_same_door(
    pyproject: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert app_reference() is None
    pyproject('[tool.rota]\napp = "tasks:app"\nurl = "memory://"')
    assert (app_reference(), default_url()) == ("tasks:app", "memory://")
    monkeypatch.setenv("ROTA_APP", "other:app")
    monkeypatch.setenv("ROTA_URL", "sqlite:///x.db")
    assert (app_reference(), default_url()) == ("other:app", "sqlite:///x.db")


@pytest.mark.parametrize("url", ["memory://", "sqlite:///x.db", "redis://h/0", "rediss://h/0", "postgresql://u:p@h/db"])
def test_the_store_is_chosen_by_one_variable(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROTA_URL", url)

    assert load().url == url


# -- values --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("word", ["false", "0", "no", "off", "False", "OFF"])
def test_a_variable_can_turn_the_engine_off(word: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROTA_ENABLED", word)

    assert load().enabled is False


@pytest.mark.parametrize("word", ["true", "1", "yes", "on", "YES"])
def test_a_variable_can_turn_something_on(word: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROTA_DEBUG", word)

    assert load().debug is True


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("45", 45), ("0.5", 0.5), ("45s", 45), ("5m", 300), ("2h", 7200), ("1d", 86_400), ("1.5h", 5400), (" 5 m ", 300)],
)
def test_a_variable_may_carry_a_unit(text: str, seconds: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROTA_KEEP_FAILED", text)

    assert load().keep_failed == seconds


@pytest.mark.parametrize(
    ("value", "seconds"), [("45", 45), ("0.5", 0.5), ('"45s"', 45), ('"5m"', 300), ('"2h"', 7200), ('"1d"', 86_400)]
)
def test_a_file_may_carry_a_unit(value: str, seconds: float, rota_toml: Write) -> None:
    rota_toml(f"keep_failed = {value}")

    assert load().keep_failed == seconds
    assert isinstance(load().keep_failed, float)


def test_code_says_seconds_as_a_number_or_a_timedelta() -> None:
    assert load(lease=45, grace=timedelta(minutes=1)).grace == 60
    assert "lease='30'" in refusal(lease="30")
    assert "lease='30s'" in refusal(lease="30s")


def test_whole_numbers_and_texts_come_from_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROTA_CONCURRENCY", "20")
    monkeypatch.setenv("ROTA_NAME", "mail-2")
    settings = load()

    assert (settings.concurrency, settings.name) == (20, "mail-2")


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ('lease = "soon"', "lease = 'soon': expected seconds, as a number or like"),
        ('lease = "30"', "lease = '30': expected seconds"),
        ("lease = true", "lease = True: expected seconds"),
        ("lease = nan", "lease = nan: expected seconds"),
        ("lease = [30]", "lease = [30]: expected seconds"),
        ("concurrency = 2.5", "concurrency = 2.5: expected a whole number"),
        ('concurrency = "20"', "concurrency = '20': expected a whole number"),
        ("concurrency = true", "concurrency = True: expected a whole number"),
        ('enabled = "false"', "enabled = 'false': expected true or false"),
        ("enabled = 0", "enabled = 0: expected true or false"),
        ("name = 1", "name = 1: expected text"),
        ("tasks = 1", "tasks = 1: expected a table"),
        ("tasks.resize = false", "tasks.resize = False: expected a table"),
        ("tasks.resize.enabled = 1", "tasks.resize.enabled = 1: expected true or false"),
        ("tasks.resize.retry = []", "tasks.resize.retry = []: expected a whole number"),
        ('tasks.resize.retry.jitter = "1s"', "tasks.resize.retry.jitter = '1s': expected a number"),
        ('tasks.resize.retry.backoff = "x"', "expected one of exponential, linear, fixed"),
        ('tasks.resize.lost = "never"', "tasks.resize.lost = 'never': expected one of retry, fail"),
        ("tasks.resize.lost = []", "tasks.resize.lost = []: expected one of retry, fail"),
    ],
)
def test_a_wrong_type_names_file_key_value_and_what_is_expected(
    line: str, expected: str, rota_toml: Write, folder: Path
) -> None:
    rota_toml(line)
    said = refusal()

    assert said.startswith(f"{folder / 'rota.toml'}: ")
    assert expected in said


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("ROTA_LEASE", "soon", "ROTA_LEASE='soon': expected seconds"),
        ("ROTA_LEASE", "inf", "ROTA_LEASE='inf': expected seconds"),
        ("ROTA_CONCURRENCY", "many", "ROTA_CONCURRENCY='many': expected a whole number"),
        ("ROTA_CONCURRENCY", "2.5", "ROTA_CONCURRENCY='2.5': expected a whole number"),
        ("ROTA_ENABLED", "maybe", "ROTA_ENABLED='maybe': expected true or false"),
        ("ROTA_TASKS__RESIZE__TIMEOUT", "soon", "ROTA_TASKS__RESIZE__TIMEOUT='soon': expected seconds"),
    ],
)
def test_a_wrong_variable_is_quoted_with_what_is_expected(
    name: str, text: str, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, text)

    assert expected in refusal()


def test_a_wrong_value_that_another_level_outvotes_is_nobodys_trouble(
    rota_toml: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    rota_toml("lease = -1")
    monkeypatch.setenv("ROTA_LEASE", "40")

    assert load().lease == 40


# -- what nobody knows ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "key", "meant"),
    [
        ("leese = 30", "leese", "lease"),
        ("keep-failed = 30", "keep-failed", "keep_failed"),
        ("[task.resize]\nenabled = false", "task", "tasks"),
        ("[tasks.resize]\nenable = false", "tasks.resize.enable", "enabled"),
        ("[tasks.resize.retry]\nlimits = 3", "tasks.resize.retry.limits", "limit"),
    ],
)
def test_an_unknown_key_is_refused_with_what_was_meant(
    line: str, key: str, meant: str, rota_toml: Write, folder: Path
) -> None:
    rota_toml(line)

    assert refusal() == f"{folder / 'rota.toml'}: {key} is not a setting; did you mean {meant}?"


def test_an_unknown_key_in_pyproject_is_named_with_its_table(pyproject: Write, folder: Path) -> None:
    pyproject("[tool.rota]\nconcurency = 3")

    assert refusal() == (
        f"{folder / 'pyproject.toml'}: tool.rota.concurency is not a setting; did you mean concurrency?"
    )


def test_an_unknown_key_like_no_other_gets_the_list(rota_toml: Write) -> None:
    rota_toml("zzz = 1")

    assert "there are: url, app, name, tz, enabled" in refusal()


def test_an_unknown_keyword_is_refused() -> None:
    assert refusal(leese=30) == "leese is not a setting; did you mean lease?"
    assert "sources is not a setting" in refusal(sources={})


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("ROTA_LEESE", "ROTA_LEASE"),
        ("ROTA_lease", "ROTA_LEASE"),
        ("ROTA_REDIS_HOSTS", "ROTA_REDIS_HOST"),
        ("ROTA_TASKS__RESIZE__ENABLE", "ROTA_TASKS__RESIZE__ENABLED"),
        ("ROTA_TASKS__ENABLED", "ROTA_TASKS__NAME__ENABLED"),
    ],
)
def test_an_unknown_variable_is_refused_with_what_was_meant(
    name: str, meant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, "1")

    assert refusal() == f"{name} is not a setting; did you mean {meant}?"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("ROTA_TEST_REDIS_URL", "redis://localhost"),
        ("ROTA_SERVICE_HOST", "10.0.0.1"),
        ("ROTA_SERVICE_PORT_HTTP", "80"),
        ("ROTA_PORT", "tcp://10.0.0.1:80"),
        ("ROTA_PORT_80_TCP_ADDR", "10.0.0.1"),
        ("ROTA_REDIS_SERVICE_PORT", "6379"),
        ("ROTA_REDIS_PORT", "tcp://10.0.0.1:6379"),
    ],
)
def test_variables_of_tests_and_of_kubernetes_services_are_left_alone(
    name: str, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, text)

    assert load() == Settings()


# -- files that are none -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (b"lease = 30\napp = ", "at line 2"),
        (b"lease = 30\n\ntasks = [\n\n", "at line 3"),
        (b"lease = 30\nlease = 31\n", "at line 2"),
        (b"lease = 30\n\nname = 'caf\xe9'\n", "not UTF-8 (at line 3)"),
    ],
)
def test_a_file_that_is_no_toml_is_refused_with_the_line(content: bytes, line: str, folder: Path) -> None:
    (folder / "rota.toml").write_bytes(content)
    said = refusal()

    assert said.startswith(f"{folder / 'rota.toml'} cannot be read: ")
    assert line in said


def test_a_file_that_cannot_be_read_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(file: Path) -> bytes:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "read_bytes", denied)  # the tests may run as root, whom no mode stops

    assert "pyproject.toml cannot be read: Permission denied" in refusal()


@pytest.mark.parametrize("text", ["[tool]\nrota = 3", "tool = 3"])
def test_a_pyproject_whose_table_is_none_is_refused(text: str, pyproject: Write) -> None:
    pyproject(text)

    assert "= 3: expected a table, [tool.rota]" in refusal()


# -- contradictions ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("keywords", "said"),
    [
        ({"url": ""}, "url='' names no store"),
        ({"url": "  "}, "url='  ' names no store"),
        ({"name": ""}, "name=''"),
        ({"concurrency": 0}, "concurrency=0: a whole number of seats, at least 1"),
        ({"lease": 0.0}, "lease=0.0: from 0.1 seconds to a day"),
        ({"lease": -1}, "lease=-1.0"),
        ({"lease": 86_401}, "lease=86401.0"),
        ({"grace": -1}, "grace=-1.0"),
        ({"sweep": 0}, "sweep=0.0"),
        ({"renew": -1}, "renew=-1.0"),
        ({"rescue": -1}, "rescue=-1.0"),
        ({"keep_failed": -1}, "keep_failed=-1.0"),
        ({"keep_succeeded": -1}, "keep_succeeded=-1.0"),
        ({"keep_most": -1}, "keep_most=-1"),
        ({"keep_least": -1}, "keep_least=-1"),
        ({"renew": 15}, "renew=15.0 with lease=30.0 (default): renew more than twice per lease"),
        ({"lease": 10, "rescue": 10.5}, "rescue=10.5 with lease=10.0: at most the lease"),
        ({"keep_least": 20_000}, "keep_least=20000 with keep_most=10000 (default): least is more than most"),
    ],
)
def test_what_cannot_be_is_refused_at_start(keywords: Mapping[str, object], said: str) -> None:
    assert said in refusal(**keywords)


def test_what_just_fits_is_taken() -> None:
    settings = load(lease=10, renew=4.9, rescue=10, keep_least=5, keep_most=5, grace=0)

    assert (settings.renew, settings.rescue, settings.keep_least) == (4.9, 10, 5)


def test_a_contradiction_names_who_said_either_side(rota_toml: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    rota_toml('renew = "20s"')
    monkeypatch.setenv("ROTA_LEASE", "25")

    assert "renew=20.0 (rota.toml) with lease=25.0 (ROTA_LEASE)" in refusal()


# -- overrides of single tasks -------------------------------------------------------------------------------------

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


class TaskOptions(Struct, frozen=True, kw_only=True):
    """As a task has them."""

    enabled: bool = True
    timeout: float | None = 30.0
    priority: int = 0
    description: str | None = None
    max_pending: int | None = None
    retry: Retry = Retry(5, delay=7.0, rules={KeyError: Retry(0)})
    limit: Limit | None = None
    rate: Rate | None = None
    max_losses: int = 5
    lost: str = "retry"
    key: str | None = "{path}"


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
    options = load().override("resize").over(TaskOptions(retry=Retry()))

    assert (options.retry, options.limit, options.rate) == (Retry(3), Limit(4), Rate(10))


def test_only_what_is_said_changes_in_the_options_of_a_task(rota_toml: Write) -> None:
    rota_toml("[tasks.resize]\npriority = 5\nretry = 3\nlimit.per_key = 1")
    code = TaskOptions(limit=Limit(total=9))
    options = load().override("resize").over(code)

    assert options == TaskOptions(
        priority=5, retry=Retry(3, delay=7.0, rules=code.retry.rules), limit=Limit(total=9, per_key=1)
    )
    assert load().override("greet").over(code) is code


def test_a_rate_out_of_nothing_needs_its_n(rota_toml: Write) -> None:
    rota_toml('[tasks.resize]\nrate.per = "1m"')
    override = load().override("resize")

    assert override.over(TaskOptions(rate=Rate(5))).rate == Rate(5, per=60.0)
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


# -- Redis in parts ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parts", "url"),
    [
        ({"HOST": "cache"}, "redis://cache:6379/0"),
        ({"HOST": "cache", "PORT": "6380", "DB": "2"}, "redis://cache:6380/2"),
        ({"HOST": "cache", "PASSWORD": "p@ss:w/rd#?"}, "redis://:p%40ss%3Aw%2Frd%23%3F@cache:6379/0"),
        ({"HOST": "cache", "USERNAME": "a/da", "PASSWORD": "x"}, "redis://a%2Fda:x@cache:6379/0"),
        ({"HOST": "cache", "USERNAME": "ada", "PASSWORD": ""}, "redis://ada@cache:6379/0"),
        ({"HOST": "::1"}, "redis://[::1]:6379/0"),
        ({"HOST": "[::1]"}, "redis://[::1]:6379/0"),
    ],
)
def test_a_redis_url_is_built_of_its_parts(parts: Mapping[str, str], url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, text in parts.items():
        monkeypatch.setenv(f"ROTA_REDIS_{name}", text)

    assert default_url() == load().url == url
    assert source("url") == "ROTA_REDIS_HOST"


def test_a_url_that_is_given_anywhere_wins_over_the_parts(rota_toml: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROTA_REDIS_HOST", "cache")
    assert load(url="memory://").url == "memory://"
    rota_toml('url = "sqlite:///x.db"')
    assert load().url == "sqlite:///x.db"


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        ({"PASSWORD": "secret"}, "ROTA_REDIS_PASSWORD is set and ROTA_REDIS_HOST is not"),
        ({"HOST": "cache", "PORT": "many"}, "ROTA_REDIS_PORT='many': expected a whole number from 1 to 65535"),
        ({"HOST": "cache", "PORT": "0"}, "ROTA_REDIS_PORT='0'"),
        ({"HOST": "cache", "DB": "-1"}, "ROTA_REDIS_DB='-1'"),
        ({"HOST": "redis://:secret@cache"}, "ROTA_REDIS_HOST='redis://:***@cache': expected a host name"),
    ],
)
def test_parts_that_make_no_url_are_refused(
    parts: Mapping[str, str], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, text in parts.items():
        monkeypatch.setenv(f"ROTA_REDIS_{name}", text)

    assert said in refusal()
    assert "secret" not in refusal()


# -- what is shown -------------------------------------------------------------------------------------------------


def test_every_setting_is_explained_and_documented() -> None:
    rows = explain(load())
    hints: dict[str, Any] = Settings.__annotations__

    assert [row[0] for row in rows] == [name for name in Settings.__struct_fields__ if name not in ("tasks", "sources")]
    assert all(hints[name].__metadata__[-1].description for name in Settings.__struct_fields__)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("redis://:secret@h:6379/0", "redis://:***@h:6379/0"),
        ("postgresql://ada:secret@h/db", "postgresql://ada:***@h/db"),
        ("postgresql://ada:secret@h/db?x=a@b", "postgresql://ada:***@h/db?x=a@b"),
        ("redis://ada:se@cret@h/0", "redis://ada:***@h/0"),
        ("redis://:se/cr#et?@h/0", "redis://:***@h/0"),
        ("redis://h/0?password=secret&db=1", "redis://h/0?password=***&db=1"),
        ("redis://h:6379/0", "redis://h:6379/0"),
        ("redis://h:6379/0?x=a@b", "redis://h:6379/0?x=a@b"),
        ("redis://ada@h:6379", "redis://ada@h:6379"),
        ("sqlite:////home/a:b@c/rota.db", "sqlite:////home/a:b@c/rota.db"),
        ("memory://", "memory://"),
    ],
)
def test_a_password_is_never_shown(url: str, shown: str) -> None:
    assert masked(url) == shown


def test_neither_explain_nor_repr_shows_the_password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROTA_URL", "redis://:secret@h/0")
    settings = load()

    assert settings.url == "redis://:secret@h/0"
    assert explain(settings)[0] == ("url", "redis://:***@h/0", "ROTA_URL")
    assert "secret" not in repr(settings)
