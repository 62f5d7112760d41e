"""Rows 0.2, 0.3 and 0.15 of the first source document: what an activity is configured with, and the keys of users."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from rota import (
    Activity,
    Breaker,
    InvalidOptions,
    Reason,
    Rota,
    UserKey,
)
from rota.domain.spec import TaskSpec
from rota.stores.memory import MemoryBackend
from rota.task import definition_of
from tests.requirement import requirement

START = datetime(2026, 5, 4, 12, tzinfo=UTC)


@requirement("0.2")
async def test_0_2_the_config_of_a_task_is_kept_in_the_store_and_seen_by_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "rota.toml").write_text("[tasks.summarise]\nenabled = false\ntimeout = 300\n")
    monkeypatch.chdir(tmp_path)
    backend = MemoryBackend()
    app = Rota(backend)

    @app.task(activity=Activity(after=1800, key="{user_id}", breaker=Breaker(3)), description="What the user did.")
    async def summarise(user_id: str) -> None: ...

    async with app:
        pass
    async with Rota(backend).client() as elsewhere:
        (spec,) = (await (await elsewhere.store()).rows(TaskSpec)).items
    assert (spec.name, spec.enabled, spec.policy.timeout, spec.description) == (
        "summarise",
        False,
        300,
        "What the user did.",
    )
    assert spec.activity == Activity(after=1800, key="{user_id}", breaker=Breaker(3))
    decision = await Rota(backend).touch("summarise", "u1")
    assert (bool(decision), decision.reason) == (False, Reason.DISABLED)


@requirement("0.2")
async def test_0_2_an_operator_sets_the_activity_of_a_task_in_rota_toml(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The source system's names: interval is `after`, its timeout `timeout`, task_ttl `expires`, and max_retries is
    `retry` for the tries of a run, `breaker` for runs that fail in a row."""
    (tmp_path / "rota.toml").write_text(
        '[tasks.summarise]\ntimeout = "5m"\nretry = 3\n[tasks.summarise.activity]\n'
        'after = "30m"\nspacing = 60\nbreaker = 3\ncool_down = "1d"\nmode = "debounce"\nmax_wait = "2h"\n'
        "expires = 7200\n"
        "[tasks.fresh]\nactivity = 60\n"
    )
    monkeypatch.chdir(tmp_path)
    app = Rota("memory://")

    @app.task(activity=Activity(after=1, key="{user_id}", breaker=Breaker(9, 5.0)))
    async def summarise(user_id: str) -> None: ...

    @app.task
    async def fresh() -> None: ...

    wanted = Activity(1800, "{user_id}", "debounce", 7200.0, 60.0, Breaker(3, 86_400.0), 7200.0)
    changed = definition_of(summarise).spec
    assert changed.activity == wanted
    assert (changed.policy.timeout, changed.policy.retry.limit) == (300.0, 3)
    assert definition_of(fresh).spec.activity == Activity(60)


@requirement("0.2")
@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("spacing = 60", "say its after as well"),
        ("after = 60\ncool_down = 5", "say breaker as well"),
        ("after = -1", "after=-1"),
        ("after = 60\nbreaker = 0", "at least 1"),
        ("aftr = 60", "did you mean after"),
        ('after = 60\nmode = "x"', "one of coalesce, debounce"),
        ("after = 60\nmax_wait = 90", "mode='debounce'"),
    ],
)
def test_0_2_what_is_wrong_with_an_activity_in_rota_toml_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, told: str
) -> None:
    (tmp_path / "rota.toml").write_text(f"[tasks.summarise.activity]\n{text}\n")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidOptions, match=told):
        Rota("memory://").task(name="summarise")(lambda: None)


@requirement("0.15")
def test_0_15_the_names_of_an_untold_device_and_agent_are_configuration() -> None:
    key = UserKey(default_device="web", default_agent="coach")
    assert key.build("u") == "u:web:coach"
    assert key.build("u", "phone") == "u:phone:coach"
    assert key.fill({"user_id": "u", "device_id": None}) == "u:web:coach"
    assert UserKey(agent=False, default_device="a:b").build("u") == "u:a%3Ab"
    with pytest.raises(ValueError, match="a text that is not empty"):
        UserKey(default_device="")


@requirement("0.3")
def test_0_3_composite_keys_of_three_two_or_one_dimensions() -> None:
    assert UserKey().build("u", "d", "a") == "u:d:a"
    assert UserKey().build("u") == "u:default:default"
    assert UserKey(agent=False).build("u", "d", "a") == "u:d"
    assert UserKey(device=False, agent=False).build("u", "d", "a") == "u"
    assert UserKey(agent=False).dimensions == ("user_id", "device_id")
    parts = UserKey().parse(UserKey().build("a:b", "c%", "d"))
    assert (parts.user_id, parts.device_id, parts.agent_id) == ("a:b", "c%", "d")
    with pytest.raises(ValueError, match="user_id is empty"):
        UserKey().build("")
