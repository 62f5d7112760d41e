"""The section of the admin, the control room and the probes: who sees what, who may do what, and what is escaped."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Permission, User
from django.core.management import call_command
from django.db import connection
from django.test import Client

from rota.app.core import core_of
from rota.django import app
from rota.django.bridge import part
from rota.domain.run import State
from rota.stores.memory import MemoryBackend

EVIL = "<script>alert(1)</script>"


@pytest.fixture(scope="module", autouse=True)
def _database() -> None:
    call_command("migrate", verbosity=0)


@pytest.fixture(autouse=True)
def store() -> Iterator[None]:
    """Each test has a store of its own, and tasks that nobody works for."""
    if "admin.report" not in app.tasks:

        @app.task(name="admin.report")
        def report(text: str = "") -> None:
            return None

        @app.task(name="admin.nightly", schedule="0 3 * * *")
        def nightly() -> None:
            return None

    with core_of(app).bound_to(MemoryBackend()):
        app.portal.call(core_of(app).declare_schedules)
        yield
    LogEntry.objects.all().delete()
    User.objects.all().delete()


def signed_in(*permissions: str, staff: bool = True) -> Client:
    user = User.objects.create_user("ada", password="x", is_staff=staff)
    for name in permissions:
        user.user_permissions.add(Permission.objects.get(codename=name, content_type__app_label="rota"))
    client = Client(enforce_csrf_checks=True)
    client.force_login(user)
    return client


def submitted(text: str = EVIL) -> str:
    return app.portal.call(lambda: app.submit("admin.report", text=text)).id


def state_of(id: str) -> State:
    return app.portal.call(lambda: app.client().run(id)).state


def post(client: Client, path: str, **data: Any) -> Any:
    """Post a form as its page does, with the token of the page."""
    client.get(path)
    return client.post(path, {**data, "csrfmiddlewaretoken": client.cookies["csrftoken"].value})


def test_the_section_is_there_for_those_who_may_see_it() -> None:
    client = signed_in("view_run")
    index = client.get("/admin/").content.decode()
    for name in ("run", "schedule", "task", "flow", "worker"):
        assert f'href="/admin/rota/{name}/"' in index
        assert client.get(f"/admin/rota/{name}/").status_code == 200
    User.objects.all().delete()
    stranger = signed_in()
    assert "/admin/rota/" not in stranger.get("/admin/").content.decode()
    assert stranger.get("/admin/rota/run/").status_code == 403
    assert Client().get("/admin/rota/run/").status_code == 302


def test_what_users_wrote_is_escaped_and_secrets_are_masked() -> None:
    id = submitted()
    client = signed_in("view_run")
    assert id in client.get("/admin/rota/run/?task=admin.report").content.decode()
    page = client.get(f"/admin/rota/run/{id.replace('_', '_5F')}/change/").content.decode()
    assert "&lt;script&gt;" in page
    assert "<script>alert" not in page
    assert 'id="why"' in page
    assert "<script>alert" not in client.get(f"/admin/rota/run/?q={part(EVIL)}").content.decode()


def test_an_action_needs_its_permission_and_leaves_an_entry_in_the_log() -> None:
    id = submitted()
    viewer = signed_in("view_run")
    assert viewer.post("/admin/rota/run/", {"action": "cancel", "_selected_action": id}).status_code == 403
    assert post(viewer, "/admin/rota/run/", action="cancel", _selected_action=id).status_code == 403
    assert state_of(id) is State.QUEUED
    User.objects.all().delete()
    operator = signed_in("view_run", "change_run")
    assert operator.post("/admin/rota/run/", {"action": "cancel"}).status_code == 403, "without the token of the page"
    assert post(operator, "/admin/rota/run/", action="cancel", _selected_action=id, note="wrong day").status_code == 302
    assert state_of(id) is State.CANCELLED
    entry = LogEntry.objects.get()
    assert (entry.object_id, entry.change_message, str(entry.user)) == (id, "Cancel: wrong day", "ada")
    assert entry.get_admin_url() == f"/admin/rota/run/{id}/change/"
    assert post(operator, "/admin/rota/schedule/", action="pause", _selected_action="admin.nightly").status_code == 403


def test_a_schedule_is_paused_and_run_by_those_who_may_change_it() -> None:
    client = signed_in("view_run", "change_schedule")
    assert "03:00" in client.get("/admin/rota/schedule/").content.decode()
    path = "/admin/rota/schedule/admin.nightly/change/"
    assert post(client, path, action="pause", note="holiday").status_code == 302
    assert "holiday" in client.get(path).content.decode()
    assert post(client, path, action="run-now").status_code == 302
    assert [entry.change_message for entry in LogEntry.objects.order_by("pk")] == ["Pause: holiday", "Run now"]


def test_a_run_that_never_was_is_not_found_and_a_refused_action_says_why() -> None:
    client = signed_in("view_run", "change_run")
    assert client.get("/admin/rota/run/no-such-run/change/").status_code == 404
    id = submitted()
    assert post(client, "/admin/rota/run/", action="retry", _selected_action=id).status_code == 302
    assert LogEntry.objects.count() == 0
    assert id in client.get("/admin/rota/run/").content.decode()


def test_the_control_room_is_for_staff_and_its_writes_come_from_its_own_pages() -> None:
    id = submitted()
    assert Client().get("/rota/").status_code == 302
    assert Client().get("/rota/api/v1/runs").status_code == 403
    outsider = signed_in("view_run", staff=False)
    assert outsider.get("/rota/api/v1/runs").status_code == 403
    User.objects.all().delete()
    client = signed_in("view_run", "change_run")
    assert [run["id"] for run in client.get("/rota/api/v1/runs?task=admin.report").json()["items"]] == [id]
    assert client.get("/rota/api/v1/me").json()["name"] == "ada"
    cancel: dict[str, Any] = {
        "path": f"/rota/api/v1/runs/{id}/cancel",
        "data": "{}",
        "content_type": "application/json",
    }
    assert client.post(**cancel).status_code == 403
    assert client.post(**cancel, headers={"Sec-Fetch-Site": "cross-site"}).status_code == 403
    assert client.post(**cancel, headers={"Origin": "http://evil.example"}).status_code == 403
    assert state_of(id) is State.QUEUED
    assert client.post(**cancel, headers={"Sec-Fetch-Site": "same-origin"}).json()["state"] == "cancelled"
    assert client.get("/rota/api/v1/events").status_code == 501
    assert (
        client.put(
            "/rota/api/v1/schedules/x", "{}", "application/json", headers={"Sec-Fetch-Site": "same-origin"}
        ).status_code
        == 403
    )


def test_the_probes_and_the_metrics_answer_without_a_login() -> None:
    client = Client()
    assert client.get("/healthz").json() == {"status": "ok"}
    assert client.get("/readyz").json() == {"status": "ready"}
    assert b"# TYPE rota_" in client.get("/metrics").content
    assert client.post("/healthz").status_code == 405


def test_a_list_is_one_page_of_the_store_and_counts_nothing(django_queries: list[str]) -> None:
    client = signed_in("view_run")
    for _ in range(60):
        submitted("one")
    django_queries.clear()
    page = client.get("/admin/rota/run/?task=admin.report").content.decode()
    assert page.count('aria-label="Why, of ') == 50
    assert "Next page" in page
    assert not [query for query in django_queries if "COUNT(" in query.upper()]
    assert len(django_queries) <= 4, "the session, the user and the permissions, however many rows there are"


@pytest.fixture
def django_queries() -> Iterator[list[str]]:
    """What the database of the project is asked."""
    queries: list[str] = []

    def note(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        queries.append(sql)
        return execute(sql, params, many, context)

    with connection.execute_wrapper(note):
        yield queries


def test_no_change_of_a_model_is_without_a_migration() -> None:
    call_command("makemigrations", "rota", "--check", "--dry-run", verbosity=0)
