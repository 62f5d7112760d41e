"""Settings: what is refused, and in which words."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from rota.domain.tuning import Tuning
from rota.settings import Settings, load
from tests.surfaces.settings.asked import Write, refusal


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

    assert "there are: url, namespace, app, name, version, environment, environment_colour, tz, enabled" in refusal()


@pytest.mark.parametrize("seconds", [0, 0.5])
def test_a_silence_that_would_cost_healthy_workers_their_runs_is_refused(seconds: float) -> None:
    assert refusal(silence=seconds) == f"silence={float(seconds)}: from 1 second to ten years"
    with pytest.raises(ValueError, match=r"^silence=.*: from 1 second to ten years"):
        Tuning(silence=seconds)


@pytest.mark.parametrize("name", ["", "x" * 41, "prod\nuction"])
def test_an_environment_that_no_page_can_show_is_refused(name: str) -> None:
    assert refusal(environment=name) == f"environment={name!r}: 1 to 40 characters on one line"


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
        ("ROTA_TOKEN", "rota_secret"),
        ("ROTA_TOKENS", "/etc/rota/tokens.toml"),
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


@pytest.mark.parametrize(
    "numbers",
    [{"lease": 2, "renew": 1}, {"sweep": 0}, {"grace": -1}, {"concurrency": 0}],
)
def test_the_engine_refuses_the_numbers_that_settings_refuse(numbers: dict[str, float]) -> None:
    whole = {name: value if name == "concurrency" else float(value) for name, value in numbers.items()}
    with pytest.raises(ValueError) as refused:  # noqa: PT011
        Tuning(**whole)  # type: ignore[arg-type]
    assert refusal(**numbers) == str(refused.value)
