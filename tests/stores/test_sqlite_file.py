"""What can be wrong with a file, in one sentence each; and what survives."""

import os
import sqlite3
import stat
from contextlib import closing
from pathlib import Path

import pytest

from rota import InvalidOptions, Rota, SchemaTooNew, State, StoreCorrupt, StoreUnavailable
from rota.domain import codec
from rota.domain.policy import Policy
from rota.domain.run import NewRun, Origin
from rota.store import ClaimRequest, RunQuery
from rota.stores import connect
from rota.stores.sqlite import SqliteBackend
from rota.stores.sqlite.connection import LONGEST_LOG, migrate, migrations
from rota.stores.sqlite.connection import connect as open_store


def new_run(id: str, payload: str = "") -> NewRun:
    return NewRun(id=id, task="t", body=codec.encode(f'{{"x":"{payload}"}}'.encode(), Origin(), Policy()))


async def test_a_file_that_is_no_database_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("shopping: milk, bread\n" * 100)
    with pytest.raises(StoreCorrupt, match=r"notes\.txt is not a sound SQLite database"):
        async with SqliteBackend(path).open():
            pass
    assert path.read_text().startswith("shopping")


async def test_a_database_of_another_program_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE customers (name TEXT)")
    other.close()
    with pytest.raises(StoreCorrupt, match="some other program"):
        async with SqliteBackend(path).open():
            pass
    again = sqlite3.connect(path)
    assert again.execute("SELECT name FROM sqlite_master").fetchall() == [("customers",)]
    again.close()


async def test_a_damaged_page_is_reported_and_the_store_goes_on_saying_so(tmp_path: Path) -> None:
    backend = SqliteBackend(tmp_path / "rota.db")
    async with backend.open() as store:
        await store.put([new_run(str(i), "x" * 500) for i in range(200)])
    # Connections that close at the same moment may leave the log beside the file, and it would hide the damage.
    with closing(sqlite3.connect(backend.path)) as last:
        last.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    raw = bytearray((tmp_path / "rota.db").read_bytes())
    raw[4096 * 3 : -4096] = b"\xff" * (len(raw) - 4096 * 4)
    (tmp_path / "rota.db").write_bytes(raw)
    with pytest.raises(StoreCorrupt, match="not a sound SQLite database"):
        async with backend.open() as store:
            await store.runs(RunQuery(limit=1000))


@pytest.mark.parametrize("version", [4, 99])
async def test_a_schema_from_the_future_or_of_an_unreleased_version_is_refused(tmp_path: Path, version: int) -> None:
    """Before the first release, versions went up to 4."""
    backend = SqliteBackend(tmp_path / "rota.db")
    async with backend.open():
        pass
    future = sqlite3.connect(backend.path)
    future.execute(f"PRAGMA user_version = {version}")
    future.close()
    advice = "upgrade rota, or remove the file if an unreleased version of rota made it"
    with pytest.raises(SchemaTooNew, match=f"schema {version}, .* up to {len(migrations())}: {advice}"):
        async with backend.open():
            pass


async def test_a_full_disk_refuses_the_put_and_loses_nothing(tmp_path: Path) -> None:
    backend = SqliteBackend(tmp_path / "rota.db", max_pages=40)
    async with backend.open() as store:
        await store.put([new_run("kept")])
        with pytest.raises(StoreUnavailable, match="no room left"):
            await store.put([new_run(f"big-{i}", "x" * 4000) for i in range(100)])
        claim = await store.claim(ClaimRequest("w", 1, ["t"], 10, 30))
        assert [run.id for run in claim.runs] == ["kept"], "all or nothing, and the store still works"


async def test_the_log_that_a_reader_made_long_is_cut_when_the_reader_has_ended(tmp_path: Path) -> None:
    backend = SqliteBackend(tmp_path / "rota.db")
    log = tmp_path / "rota.db-wal"
    async with backend.open() as store:
        await store.put([new_run("first")])
        with closing(sqlite3.connect(backend.path, isolation_level=None)) as reader:
            reader.execute("BEGIN")
            reader.execute("SELECT count(*) FROM runs").fetchone()
            for place in range(6):
                await store.put([new_run(f"{place}-{i}", "x" * 4000) for i in range(1000)])
            assert log.stat().st_size > LONGEST_LOG
        for place in range(2):  # the first commit writes the log into the file, the second begins the log anew
            await store.put([new_run(f"after-{place}-{i}") for i in range(2)])
        assert log.stat().st_size <= LONGEST_LOG


async def test_the_page_limit_can_be_given_in_the_url(tmp_path: Path) -> None:
    app = Rota(f"sqlite:///{tmp_path}/rota.db?max_pages=40")

    @app.task
    async def keep(text: str) -> None: ...

    with pytest.raises(StoreUnavailable, match="no room left"):
        await app.submit_many([keep.bind("x" * 4000) for _ in range(100)])
    await app.stop()


async def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreUnavailable, match="cannot be made"):
        async with SqliteBackend(tmp_path / "file" / "rota.db").open():
            pass


@pytest.mark.parametrize(
    "url",
    [
        "sqlite://",
        "sqlite:///",
        "sqlite:///folder/",
        "sqlite://host/x.db",
        "sqlite:///x.db?max_pages=many",
        "mysql://x",
    ],
)
def test_a_url_that_names_no_store_is_refused(url: str) -> None:
    with pytest.raises(InvalidOptions):
        connect(url)


async def test_without_a_url_the_file_lies_beside_the_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ROTA_URL", raising=False)
    (tmp_path / "pyproject.toml").write_text("")
    inner = tmp_path / "src" / "deep"
    inner.mkdir(parents=True)
    monkeypatch.chdir(inner)
    assert Rota().backend.url == f"sqlite:///{tmp_path}/.rota/rota.db"


async def test_an_acknowledged_submit_is_on_disk(tmp_path: Path) -> None:
    backend = SqliteBackend(tmp_path / "rota.db")
    async with backend.open() as store:
        await store.put([new_run("a")])
        other = sqlite3.connect(backend.path)
        assert other.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        assert other.execute("SELECT id, state FROM runs").fetchall() == [("a", "queued")]
        other.close()


async def test_one_bad_job_does_not_spoil_those_that_share_its_commit(tmp_path: Path) -> None:
    import asyncio

    backend = SqliteBackend(tmp_path / "rota.db")
    async with backend.open() as store:
        bad = NewRun(id="bad", task="t", body=b"\xff\xfe")  # not text: SQLite cannot take it
        answers = await asyncio.gather(
            store.put([new_run("a")]), store.put([bad]), store.put([new_run("b")]), return_exceptions=True
        )
        assert isinstance(answers[1], ValueError)
        page = await store.runs(RunQuery(state=[State.QUEUED]))
        assert sorted(run.id for run in page.runs) == ["a", "b"]


def modes(folder: Path) -> dict[str, int]:
    return {name: stat.S_IMODE((folder / name).stat().st_mode) for name in sorted(os.listdir(folder))}


async def test_nobody_else_can_read_a_new_store_and_a_named_folder_keeps_its_mode(tmp_path: Path) -> None:
    own, default = tmp_path / "own", tmp_path / ".rota"
    own.mkdir(mode=0o755)
    for folder, mode in ((own, 0o755), (default, 0o700)):
        async with SqliteBackend(folder / "rota.db").open() as store:
            await store.put([new_run("a")])
            assert modes(folder) == {"rota.db": 0o600, "rota.db-shm": 0o600, "rota.db-wal": 0o600}
        assert stat.S_IMODE(folder.stat().st_mode) == mode


@pytest.mark.parametrize(("before", "after"), [((0o755, 0o644), (0o700, 0o600)), ((0o770, 0o660), (0o770, 0o660))])
async def test_a_default_store_of_an_earlier_version_is_tightened_unless_somebody_chose_its_mode(
    tmp_path: Path, before: tuple[int, int], after: tuple[int, int]
) -> None:
    for folder, expected in ((tmp_path / ".rota", after), (tmp_path / "own", before)):
        file = folder / "rota.db"
        async with SqliteBackend(file).open():
            pass
        folder.chmod(before[0])
        file.chmod(before[1])
        async with SqliteBackend(file).open():
            pass
        assert (stat.S_IMODE(folder.stat().st_mode), modes(folder)["rota.db"]) == expected


@pytest.mark.parametrize("at", [0, 1, 2, 3])
def test_a_schema_that_another_makes_meanwhile_is_not_taken_for_a_strangers(tmp_path: Path, at: int) -> None:
    path, seen = str(tmp_path / "rota.db"), list[str]()
    with closing(sqlite3.connect(path, isolation_level=None)) as slow:
        slow.execute("PRAGMA journal_mode = WAL")

        def between(statement: str) -> None:
            """Another opens the store before the statement of this number."""
            seen.append(statement)
            if len(seen) == at + 1:
                open_store(path).close()

        slow.set_trace_callback(between)
        assert migrate(slow, path) == (len(migrations()), len(migrations()))


async def test_migrations_are_numbered_without_gaps_and_applied_once(tmp_path: Path) -> None:
    folder = Path(connect.__code__.co_filename).parent / "sqlite" / "migrations"
    numbers = sorted(int(name[:4]) for name in os.listdir(folder) if name.endswith(".sql"))
    assert numbers == list(range(1, len(numbers) + 1))
    backend = SqliteBackend(tmp_path / "rota.db")
    for _ in range(2):
        async with backend.open() as store:
            await store.put([new_run("a")])
    check = sqlite3.connect(backend.path)
    assert check.execute("PRAGMA user_version").fetchone() == (len(numbers),)
    check.close()
