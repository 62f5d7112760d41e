"""Sessions for browsers, trusted proxies and quotas, and those who attack them."""

from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
from starlette.types import ASGIApp

from rota import Rota
from rota.client.fleet import SESSION_TASK
from rota.errors import StoreUnavailable
from rota.store import AuditEntry, RunQuery
from rota.stores.memory import MemoryBackend
from rota.web.problems import Problem
from rota.web.proxies import TrustedProxies, networks
from rota.web.quotas import Quota
from rota.web.server import by_token
from rota.web.service import service
from rota.web.tokens import Tokens, fingerprint, new_token

ME, SESSION, RUNS = "/api/v1/me", "/api/v1/session", "/api/v1/runs"
SAME = {"Sec-Fetch-Site": "same-origin"}
TOKEN = new_token()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    file = tmp_path / "tokens.toml"
    file.write_text(f'[ada]\nsha256 = "{fingerprint(TOKEN)}"\nrole = "operator"\n[bob]\nrole = "viewer"\n')
    return file


@pytest.fixture
async def replicas(app: Rota, file: Path) -> AsyncIterator[list[ASGIApp]]:
    """Two services over one store."""
    async with app.client():
        tokens = [Tokens(file=file), Tokens(file=file)]
        yield [service(app, by_token(one, "X-User"), [], one)[0] for one in tokens]


def browser(
    served: ASGIApp, cookie: str = "", url: str = "http://localhost", address: str = "9.9.9.9"
) -> httpx.AsyncClient:
    transport = httpx.ASGITransport(served, raise_app_exceptions=False, client=(address, 1))
    return httpx.AsyncClient(transport=transport, base_url=url, headers={"Cookie": cookie} if cookie else {})


def write(file: Path, text: str) -> None:
    file.write_text(text)


async def log_in(served: ASGIApp, **options: str) -> str:
    """Return the cookie of a new session."""
    answer = await browser(served, **options).post(SESSION, json={"token": TOKEN}, headers=SAME)
    assert answer.status_code == 204
    return answer.headers["Set-Cookie"].partition(";")[0]


async def test_a_session_is_known_to_every_replica_and_ends_on_all(replicas: list[ASGIApp]) -> None:
    one, two = replicas
    answer = await browser(one).post(SESSION, json={"token": TOKEN}, headers=SAME)
    words = answer.headers["Set-Cookie"].split("; ")
    assert words[1:] == ["Path=/", "Max-Age=43200", "HttpOnly", "SameSite=Strict"]
    cookie = words[0]
    assert (await browser(two, cookie).get(ME)).json()["name"] == "ada"
    made = await browser(two, cookie).post(RUNS, json={"task": "add", "args": {"a": 1}}, headers=SAME)
    assert made.status_code == 201
    gone = await browser(two, cookie).delete(SESSION, headers=SAME)
    assert (gone.status_code, "Max-Age=0" in gone.headers["Set-Cookie"]) == (204, True)
    assert [(await browser(served, cookie).get(ME)).status_code for served in replicas] == [401, 401]


async def test_the_doctor_does_not_count_sessions_as_runs(replicas: list[ASGIApp]) -> None:
    cookie = await log_in(replicas[0])
    checks = (await browser(replicas[0], cookie).get("/api/v1/doctor")).json()["items"]
    told = {each["check"]: each["detail"] for each in checks}
    assert told["depths"] == "0 queued and 0 running, of 0 tasks"


async def test_logins_are_audited(app: Rota, replicas: list[ASGIApp]) -> None:
    cookie = await log_in(replicas[0])
    assert (await browser(replicas[1], cookie).delete(SESSION, headers=SAME)).status_code == 204
    other = await log_in(replicas[0])
    (id,) = [one["id"] for one in (await browser(replicas[0], other).get("/api/v1/sessions")).json()["items"]]
    assert (await browser(replicas[0], other).delete(f"/api/v1/sessions/{id}", headers=SAME)).status_code == 204
    found = list(reversed((await app.client().rows(AuditEntry)).items))
    assert [one.action for one in found] == ["sessions.begin", "sessions.end"] * 2
    assert {(one.by, one.via, one.address) for one in found} == {("ada", "http", "9.9.9.9")}
    assert found[-1].subjects == (id,)
    assert cookie.partition("=")[2] not in str(found)


async def test_over_https_the_cookie_is_bound_to_the_host(replicas: list[ASGIApp]) -> None:
    answer = await browser(replicas[0], url="https://localhost").post(SESSION, json={"token": TOKEN}, headers=SAME)
    assert answer.headers["Set-Cookie"].startswith("__Host-rota=")
    assert answer.headers["Set-Cookie"].endswith("; Secure")


async def test_other_sites_cannot_use_a_session_nor_begin_one(replicas: list[ASGIApp]) -> None:
    cookie = await log_in(replicas[0])
    http = browser(replicas[0], cookie)
    for headers in (
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Sec-Fetch-Site": "none"},
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "cross-site", "Origin": "http://localhost"},
        {},
    ):
        assert (await http.post(f"{RUNS}", json={"task": "add"}, headers=headers)).status_code == 403, headers
        assert (await http.delete(SESSION, headers=headers)).status_code == 403
    assert (
        await http.post(RUNS, json={"task": "add", "args": {"a": 1}}, headers={"Origin": "http://localhost"})
    ).is_success
    for headers in ({"Sec-Fetch-Site": "cross-site"}, {"Origin": "http://evil.example"}):
        answer = await browser(replicas[0]).post(SESSION, json={"token": TOKEN}, headers=headers)
        assert (answer.status_code, "Set-Cookie" in answer.headers) == (403, False)


async def test_forged_cookies_open_nothing(app: Rota, replicas: list[ASGIApp]) -> None:
    name, _, secret = (await log_in(replicas[0])).partition("=")
    (run,) = (await app.client().runs(RunQuery(task=SESSION_TASK))).runs
    assert secret not in repr(run), "the store has only a digest"
    forged = [secret[:-1], secret + "A", secret.swapcase(), run.id, "' OR 1=1 --", "\x7f", fingerprint(TOKEN), TOKEN]
    for place, value in enumerate(forged):
        http = browser(replicas[0], f"{name}={value}", address=f"10.0.0.{place}")
        assert (await http.get(ME)).status_code == 401, value
    other = (await app.tasks["add"].submit(1)).id
    assert (await browser(replicas[0], f"{name}={other}").get(ME)).status_code == 401


async def test_a_login_never_takes_over_a_cookie_that_somebody_planted(replicas: list[ASGIApp]) -> None:
    planted = await log_in(replicas[0])
    answer = await browser(replicas[0], planted).post(SESSION, json={"token": TOKEN}, headers=SAME)
    assert answer.headers["Set-Cookie"].partition(";")[0] != planted
    assert (await browser(replicas[0], planted).get(ME)).status_code == 401


async def test_a_session_ends_by_time_and_with_its_token(app: Rota, replicas: list[ASGIApp], file: Path) -> None:
    cookie = await log_in(replicas[0])
    backend = app.backend
    assert isinstance(backend, MemoryBackend)
    backend.skew += 12 * 3600 + 1
    assert (await browser(replicas[0], cookie).get(ME)).status_code == 401
    again = await log_in(replicas[0])
    assert (await browser(replicas[0], again).get(ME)).status_code == 200
    write(file, "")
    assert (await browser(replicas[0], again).get(ME)).status_code == 401


async def test_logins_are_few_and_wrong_tokens_look_alike(replicas: list[ASGIApp]) -> None:
    tokens = ("x", new_token(), TOKEN[:-1], TOKEN + "x", "y" * 900)
    answers = [await browser(replicas[0]).post(SESSION, json={"token": token}) for token in tokens]
    assert {(answer.status_code, answer.json()["detail"]) for answer in answers} == {(401, "no such token")}
    refused = await browser(replicas[0]).post(SESSION, json={"token": TOKEN})
    assert (refused.status_code, refused.headers["Retry-After"]) == (429, "12")
    assert (await browser(replicas[0], address="8.8.8.8").post(SESSION, json={"token": TOKEN})).status_code == 204


async def test_only_a_trusted_proxy_says_who_calls_from_where(replicas: list[ASGIApp]) -> None:
    behind = TrustedProxies(replicas[0], networks(["10.0.0.0/8"]), "X-User")
    bob = {"X-User": "bob", "X-Forwarded-Proto": "https", "X-Forwarded-For": "6.6.6.6, 7.7.7.7, 10.1.1.1"}
    assert (await browser(behind, address="10.2.2.2").get(ME, headers=bob)).json()["name"] == "bob"
    assert (await browser(behind, address="7.7.7.7").get(ME, headers=bob)).status_code == 401
    for user in ("nobody", "", "ada\tbob"):
        answer = await browser(behind, address="10.2.2.2").get(ME, headers={"X-User": user})
        assert answer.status_code == 401
    for _ in range(5):  # the address is the last one that no trusted proxy has
        await browser(behind, address="10.2.2.2").post(SESSION, json={"token": "x"}, headers=bob)
    spoofed = {"X-Forwarded-For": "1.2.3.4, 7.7.7.7"}
    assert (
        await browser(behind, address="10.3.3.3").post(SESSION, json={"token": "x"}, headers=spoofed)
    ).status_code == 429
    over_https = await browser(behind, address="10.2.2.2").post(
        SESSION, json={"token": TOKEN}, headers={"X-Forwarded-Proto": "https", "X-Forwarded-For": "5.5.5.5"}
    )
    assert "__Host-rota" in over_https.headers["Set-Cookie"]


async def test_a_credential_has_a_quota(replicas: list[ASGIApp], file: Path) -> None:
    write(file, f'[ada]\nsha256 = "{fingerprint(TOKEN)}"\nrole = "operator"\nper_minute = 2\n')
    http = browser(replicas[0])
    http.headers["Authorization"] = f"Bearer {TOKEN}"
    assert [(await http.get(ME)).status_code for _ in range(3)] == [200, 200, 429]


def test_a_quota_comes_back_evenly_and_forgets_old_names() -> None:
    now = [100.0]
    quota = Quota("no more", lambda: now[0])
    for _ in range(5):
        quota.take("a", 5)
    with pytest.raises(Problem):
        quota.take("a", 5)
    now[0] += 12
    quota.take("a", 5)
    assert quota.wait("a", 5) == 12
    assert quota.wait("b", 5) == 0


async def test_people_see_and_end_their_own_sessions_only(replicas: list[ASGIApp], file: Path) -> None:
    other = new_token()
    both = {"ada": (TOKEN, "operator"), "eve": (other, "admin")}
    lines = (f'[{name}]\nsha256 = "{fingerprint(each)}"\nrole = "{role}"' for name, (each, role) in both.items())
    write(file, "\n".join(lines))
    one, two = replicas
    here, there = await log_in(one), await log_in(two)
    listed = (await browser(one, here).get(f"{SESSION}s")).json()["items"]
    assert [each["here"] for each in listed].count(True) == 1
    assert len(listed) == 2
    assert not any(cookie.partition("=")[2] in str(listed) for cookie in (here, there)), "the secrets"
    away = next(each["id"] for each in listed if not each["here"])
    eve = httpx.AsyncClient(
        transport=httpx.ASGITransport(one), base_url="http://localhost", headers={"Authorization": f"Bearer {other}"}
    )
    assert (await eve.get(f"{SESSION}s")).json()["items"] == []
    assert (await eve.delete(f"{SESSION}s/{away}")).status_code == 404
    assert (await browser(one, there).get(ME)).status_code == 200
    assert (await browser(two, here).delete(f"{SESSION}s/{away}", headers=SAME)).status_code == 204
    assert (await browser(one, there).get(ME)).status_code == 401
    assert (await browser(one, here).get(ME)).status_code == 200


async def test_a_cookie_whose_store_does_not_answer_is_a_503_soon(
    app: Rota, replicas: list[ASGIApp], monkeypatch: pytest.MonkeyPatch
) -> None:
    cookie = await log_in(replicas[0])
    store = await app.client().store()

    async def down(query: RunQuery) -> None:
        raise StoreUnavailable("redis://:hunter2@secret")

    with monkeypatch.context() as patch:
        patch.setattr(store, "runs", down)
        answer = await browser(replicas[0], cookie).get(ME)
    assert (answer.status_code, answer.headers["Retry-After"]) == (503, "1")
    assert "hunter2" not in answer.text
    assert (await browser(replicas[0], cookie).get(ME)).status_code == 200


async def test_an_admin_reads_who_has_a_token_and_nobody_reads_a_token(replicas: list[ASGIApp], file: Path) -> None:
    other, third = new_token(), new_token()
    write(
        file,
        f'[ada]\nsha256 = "{fingerprint(TOKEN)}"\nrole = "admin"\n'
        f'[ci]\nsha256 = ["{fingerprint(other)}", "{fingerprint(third)}"]\nrights = ["submit"]\ntasks = ["add"]\n'
        f"per_minute = 60\nexpires = 2030-01-02T03:04:05Z\n"
        f'[bob]\nrole = "viewer"\n',
    )
    http = browser(replicas[0])
    answer = await http.get("/api/v1/tokens", headers={"Authorization": f"Bearer {TOKEN}"})
    found = {item.pop("name"): item for item in answer.json()["items"]}
    assert found["ci"] == {
        "tokens": 2,
        "rights": ["submit"],
        "tasks": ["add"],
        "queues": [],
        "namespaces": [],
        "expires_at": "2030-01-02T03:04:05.000000Z",
        "per_minute": 60,
    }
    assert (found["bob"]["tokens"], found["bob"]["rights"]) == (0, ["read", "metrics"])
    assert (found["ada"]["tokens"], found["ada"]["expires_at"]) == (1, None)
    assert not any(fingerprint(token) in answer.text for token in (TOKEN, other, third))
    refused = await http.get("/api/v1/tokens", headers={"Authorization": f"Bearer {other}"})
    assert (refused.status_code, "admin" in refused.json()["detail"]) == (403, True)
