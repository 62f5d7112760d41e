"""`django://ALIAS`: the store in a database of the project."""

import asyncio
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import asyncpg
import pytest
from django.db import connections
from django.test import override_settings

from rota import InvalidOptions
from rota.app.core import core_of
from rota.django import databases
from rota.django.project import app as project_app
from rota.django.transactions import _same_database  # pyright: ignore[reportPrivateUsage]
from rota.errors import StoreUnavailable
from rota.settings import load
from rota.stores import connect
from rota.stores.postgres import PostgresBackend
from storekit.servers import PostgresServer
from tests.django.aliases import alias, entry_of
from tests.django.shop import tasks as shop

ROOT = Path(__file__).parents[2]
POSTGRES = "django.db.backends.postgresql"
PLAIN = {"ENGINE": POSTGRES, "NAME": "shop", "USER": "ada", "PASSWORD": "p/w", "HOST": "db.example", "PORT": "5433"}


def asked() -> str:
    return "a token"


@pytest.mark.parametrize(
    ("entry", "dsn"),
    [
        (PLAIN, "postgresql://ada@db.example:5433/shop"),
        ({**PLAIN, "PORT": 5433, "HOST": "10.0.0.7"}, "postgresql://ada@10.0.0.7:5433/shop"),
        ({"ENGINE": POSTGRES, "NAME": "shop"}, "postgresql:///shop"),
        ({**PLAIN, "HOST": "/run/postgresql"}, "postgresql://ada@/shop?host=/run/postgresql&port=5433"),
        ({**PLAIN, "HOST": "::1"}, "postgresql://ada@/shop?host=%5B%3A%3A1%5D&port=5433"),
        ({**PLAIN, "HOST": "a,b", "PORT": "1,2"}, "postgresql://ada@/shop?host=a%2Cb&port=1%2C2"),
        ({"ENGINE": POSTGRES, "NAME": "a/b c", "USER": "o'hara@x"}, "postgresql://o%27hara%40x@/a%2Fb%20c"),
        (
            {**PLAIN, "OPTIONS": {"sslmode": "verify-full", "sslrootcert": "/etc/ca.pem"}},
            "postgresql://ada@db.example:5433/shop?sslmode=verify-full&sslrootcert=/etc/ca.pem",
        ),
        (
            {"ENGINE": POSTGRES, "OPTIONS": {"service": "shop", "passfile": ".pg"}},
            "postgresql:///?passfile=.pg&service=shop",
        ),
        (
            {**PLAIN, "OPTIONS": {"options": "-c search_path=app,public"}},
            "postgresql://ada@db.example:5433/shop?options=-c%20search_path%3Dapp%2Cpublic",
        ),
        (
            {**PLAIN, "OPTIONS": {"assume_role": "owner", "isolation_level": 3, "pool": True, "connect_timeout": 5}},
            "postgresql://ada@db.example:5433/shop?role=owner",
        ),
        ({**PLAIN, "PASSWORD": asked, "CONN_MAX_AGE": 60}, "postgresql://ada@db.example:5433/shop"),
    ],
)
def test_an_entry_of_the_setting_is_a_url_without_its_password(entry: dict[str, Any], dsn: str) -> None:
    with alias("shop", entry):
        assert databases.dsn_of("django://shop") == dsn
        backend = databases.connect(databases.current("django://shop?schema=jobs&max_connections=9"))
    assert isinstance(backend, PostgresBackend)
    assert (backend.address.schema, backend.address.max_connections) == ("jobs", 9)
    assert "p/w" not in f"{backend.address.dsn} {backend.url}"
    assert (backend.address.password is None) is not bool(entry.get("PASSWORD"))


@pytest.mark.parametrize(
    ("url", "entry", "says"),
    [
        ("django://shpo", PLAIN, "django://shpo: DATABASES has no alias 'shpo'; did you mean shop?"),
        (
            "django://default",
            PLAIN,
            "django://default: the database is sqlite, and a store can only be in a PostgreSQL",
        ),
        (
            "django://shop",
            {**PLAIN, "OPTIONS": {"hostaddr": "10.0.0.7", "channel_binding": "require"}},
            "django://shop: OPTIONS has channel_binding, hostaddr, which the store's driver does not know",
        ),
        ("django://shop?schema=pg_x", PLAIN, "schema is a name of 1 to 48 bytes"),
    ],
)
def test_what_cannot_be_mapped_is_refused_by_name(url: str, entry: dict[str, Any], says: str) -> None:
    with alias("shop", entry), pytest.raises(InvalidOptions) as refused:
        databases.connect(databases.current(url))
    assert says in str(refused.value)
    assert "p/w" not in str(refused.value)


def test_only_a_project_has_such_a_url_and_its_namespace_is_a_schema() -> None:
    with pytest.raises(InvalidOptions, match="only a Django project knows its DATABASES"):
        connect("django://default")
    assert load(url="django://default", namespace="jobs").store_url == "django://default?schema=jobs"


@pytest.fixture
def guarded(postgres: PostgresServer) -> Iterator[PostgresServer]:
    """A server that asks the role `ada` for a password."""
    folder = Path(tempfile.mkdtemp(prefix="rota-hba-"))
    rules = folder / "pg_hba.conf"
    rules.write_text("local all ada scram-sha-256\nlocal all all trust\n")
    folder.chmod(0o755)
    rules.chmod(0o644)
    try:
        with PostgresServer(postgres.programs, {"hba_file": str(rules)}) as server:
            yield server
    finally:
        shutil.rmtree(folder)


def test_a_password_is_asked_for_each_connection(guarded: PostgresServer) -> None:
    password = ["first"]

    async def as_owner(*statements: str) -> None:
        owner: Any = await asyncpg.connect(guarded.url)  # pyright: ignore[reportUnknownMemberType]
        for statement in statements:
            await owner.execute(statement)
        await owner.close()

    asyncio.run(as_owner("CREATE ROLE ada LOGIN PASSWORD 'first'", "GRANT CREATE ON DATABASE postgres TO ada"))
    with alias("shop", entry_of(guarded.url, USER="ada", PASSWORD=lambda: password[0])):
        backend = databases.connect("django://shop")

        async def opened() -> None:
            async with backend.open() as store:
                await store.depths()

        asyncio.run(opened())
        asyncio.run(as_owner("ALTER ROLE ada PASSWORD 'second'"))
        with pytest.raises(StoreUnavailable, match="does not let this user in"):
            asyncio.run(opened())
        password[0] = "second"
        asyncio.run(opened())


def test_a_task_of_the_project_runs_in_its_own_database(postgres: PostgresServer, namespace: str) -> None:
    entry = entry_of(postgres.url, OPTIONS={"options": "-c search_path=pg_catalog"})
    with alias("shop", entry), override_settings(ROTA={"URL": f"django://shop?schema={namespace}", "DATABASE": "shop"}):
        app = project_app()
        assert app.backend.url.endswith(f"schema={namespace}")
        assert _same_database("shop") is app.backend.submits_within, "a run is a part of the transaction"
        assert _same_database("default") is None
        result = shop.add.enqueue(1)
        with app.running(grace=5):
            assert app.portal.call(lambda: app.client().ended(result.id, 20)).state == "succeeded"
        connections.settings["shop"]["NAME"] = "test_shop"
        assert databases.current("django://shop") == "django://shop/test_shop"
        assert isinstance(app.backend, PostgresBackend)
        assert "/test_shop?" in app.backend.address.dsn, "a test runner has renamed the database"


def test_a_process_that_has_not_set_django_up_opens_the_same_store() -> None:
    with alias("shop", PLAIN), override_settings(ROTA={"URL": "django://shop"}):
        core = core_of(project_app())
        url, opener = core.store_url, core.opener
    module, _, function = opener.partition(":")
    program = f"from {module} import {function} as opens; print(opens({url!r}).url)"
    environment = {**os.environ, "DJANGO_SETTINGS_MODULE": "tests.django.settings", "PYTHONPATH": str(ROOT)}
    environment["SHOP_DATABASES"] = json.dumps({"shop": PLAIN, "default": PLAIN})
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, env=environment, check=True, capture_output=True, text=True
    )
    assert done.stdout.strip() == "postgresql://ada@db.example:5433/shop"
