"""Logins at an identity provider in front of a real proxy: how they begin, end and fail."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
import yaml

from origin.answers import response
from origin.message import Message
from origin.recording import RecordingOrigin
from proxy.command import Process, gateway, gateway_class, save
from wire.harness.client import Client, build_request
from wire.harness.objects import edge_proxy
from wire.harness.ports import free_port
from wire.http2.client import H2Client, Stream
from wire.oidc.browser import Browser, location, values
from wire.oidc.provider import CLIENT, SECRET, Provider
from wire.test_jwt import service


def answer(message: Message) -> bytes:
    return response(b"behind", head=message.method == b"HEAD")


def objects(
    port: int,
    backend: int,
    idp: Provider,
    oidc: dict[str, Any],
    more: dict[str, Any],
    log: dict[str, Any] | None = None,
) -> list[dict[str, Any]]:
    text = f"""
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {{name: web, namespace: default}}
spec:
  parentRefs: [{{name: edge}}]
  rules: [{{backendRefs: [{{name: web, port: 80}}]}}]
---
apiVersion: v1
kind: Secret
metadata: {{name: client, namespace: default}}
stringData: {{client-secret: "{SECRET}"}}
---
apiVersion: gateway.edge.io/v1alpha1
kind: SecurityPolicy
metadata: {{name: login, namespace: default}}
spec:
  targetRefs: [{{group: gateway.networking.k8s.io, kind: HTTPRoute, name: web}}]
  oidc:
    provider: {{issuer: "{idp.issuer}", backendRefs: [{{name: idp, port: 80}}]}}
    clientID: {CLIENT}
    clientSecret: {{name: client}}
    claimToHeaders: [{{header: x-sub, claim: sub}}]
"""
    parts = [*yaml.safe_load_all(text), *service("web", backend), *service("idp", idp.port)]
    parts[2]["spec"]["oidc"].update(oidc)
    parts[2]["spec"].update(more)
    edge = gateway(port)
    edge["spec"]["infrastructure"] = {
        "parametersRef": {"group": "gateway.edge.io", "kind": "EdgeProxy", "name": "edge"}
    }
    return [gateway_class(), edge, edge_proxy("edge", accessLog=log or {}), *parts]


class Front:
    """A proxy with one policy."""

    def __init__(
        self, folder: Any, origin: RecordingOrigin, provider: Provider, **oidc: Any
    ) -> None:
        self.origin, self.provider = origin, provider
        self.port = free_port()
        self.file = folder / "a.yaml"
        self.oidc = oidc
        self.more: dict[str, Any] = {}  # beside it in the policy
        self.lines: dict[str, Any] = {}  # of the access log
        self.log = folder / "access.log"
        self.write()
        more = ("--access-log", str(self.log))
        self.run = Process(folder, "-f", str(self.file), "--workers", "2", *more)
        self.run.wait_ready()

    def write(self, **oidc: Any) -> None:
        self.oidc.update(oidc)
        made = objects(self.port, self.origin.port, self.provider, self.oidc, self.more, self.lines)
        save(self.file, *made)

    def browser(self, host: str = "shop.example.com") -> Browser:
        return Browser(self.port, host)


def start(folder: Any, **oidc: Any) -> Iterator[Front]:
    provider = Provider()
    with RecordingOrigin(answer) as origin:
        front = Front(folder, origin, provider, **oidc)
        try:
            deadline = time.monotonic() + 20
            while front.browser().get("/").status == 503:
                assert time.monotonic() < deadline
            yield front
        finally:
            code = front.run.stop()
            provider.close()
            assert code == 0


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Front]:
    yield from start(tmp_path_factory.mktemp("front"))


@pytest.fixture
def front(shared: Front) -> Front:
    provider = shared.provider
    provider.claims, provider.response, provider.document = {}, {}, {}
    provider.lifetime, provider.token_status, provider.delay, provider.down = 300, 200, 0.0, False
    provider.signs_with = (0, "one")
    provider.posts.clear()
    shared.origin.take()
    return shared


def test_a_login_returns_to_its_page_and_the_backend_knows_who_it_is(front: Front) -> None:
    browser = front.browser()
    answer = browser.log_in(front.provider, "/orders?page=2")
    assert location(answer) == "/orders?page=2"
    assert values(answer, "cache-control") == ["no-store"]
    assert len(browser.sessions) == 1 and browser.logins == []
    browser.cookies["theme"] = "dark"
    for _ in range(3):  # opened, and known
        assert browser.get("/orders?page=2", ("x-sub", "root")).status == 200
    for message in front.origin.take().messages:
        assert message.values(b"x-sub") == [b"jane"]
        assert message.values(b"cookie") == [b"theme=dark"], "the backend gets no session"
    del browser.cookies["theme"]
    assert browser.get("/").status == 200
    (message,) = front.origin.take().messages
    assert message.values(b"cookie") == []


def test_logins_of_several_tabs_all_succeed(front: Front) -> None:
    browser = front.browser()
    tabs = [browser.begin(f"/tab/{number}") for number in range(8)]
    assert len(browser.logins) == 8
    for number in (3, 7, 0, 1, 2, 4, 5, 6):
        answer = browser.call_back(front.provider.authorize(tabs[number]))
        assert (answer.status, location(answer)) == (302, f"/tab/{number}")


def test_a_ninth_login_ends_the_oldest_one(front: Front) -> None:
    browser = front.browser()
    tabs = []
    for number in range(9):
        tabs.append(browser.begin(f"/tab/{number}"))
        time.sleep(0.0)
    assert len(browser.logins) == 8
    outcomes = [browser.call_back(front.provider.authorize(one)).status for one in tabs]
    assert outcomes.count(302) >= 8


@pytest.mark.parametrize(
    "headers",
    [
        (("accept", "*/*"),),
        (("accept", "application/json"), ("sec-fetch-mode", "cors")),
        (("accept", "text/html"), ("x-requested-with", "XMLHttpRequest")),
        (
            ("accept", "text/html"),
            *(("connection", "upgrade"), ("upgrade", "websocket")),
            *(("sec-websocket-key", "AAAAAAAAAAAAAAAAAAAAAA=="), ("sec-websocket-version", "13")),
        ),
    ],
)
def test_what_is_no_navigation_gets_401(front: Front, headers: tuple[tuple[str, str], ...]) -> None:
    answer = front.browser().get("/", *headers)
    assert (
        answer.status == 401
        and values(answer, "www-authenticate")
        and not values(answer, "location")
    )
    assert front.browser().get("/", method="POST").status == 401
    assert front.origin.take().messages == []


@pytest.mark.parametrize(
    ("claims", "status"),
    [
        ({"nonce": "other"}, 401),
        ({"nonce": None}, 401),
        ({"aud": "other"}, 403),
        ({"aud": [CLIENT, "other"]}, 401),
        ({"azp": "other"}, 401),
        ({"iss": "https://other.example.com"}, 401),
        ({"exp": 1_000_000_000}, 401),
        ({"exp": None}, 401),
        ({"iat": 4_000_000_000}, 401),
        ({"exp": -75}, 401),
        ({"iat": 75}, 401),
        ({"nbf": 75}, 401),
        ({"sub": None}, 401),
        ({"sub": ""}, 401),
    ],
)
def test_an_id_token_for_something_else_is_no_login(
    front: Front, claims: dict[str, Any], status: int
) -> None:
    front.provider.claims = from_now(claims)
    browser = front.browser()
    answer = browser.call_back(front.provider.authorize(browser.begin()))
    assert answer.status == status and browser.sessions == [] and browser.logins == []


def from_now(claims: dict[str, Any]) -> dict[str, Any]:
    """Return claims with times: those near 0 are seconds from now."""
    now = int(time.time())
    return {
        name: now + one if isinstance(one, int) and abs(one) < 1000 else one
        for name, one in claims.items()
    }


@pytest.mark.parametrize("claims", [{"exp": -45}, {"iat": 45, "exp": 400}, {"nbf": 45}])
def test_the_clock_of_the_provider_may_differ_by_a_minute(
    front: Front, claims: dict[str, Any]
) -> None:
    front.provider.claims = from_now(claims)
    browser = front.browser()
    browser.log_in(front.provider)
    assert browser.get("/", ("accept", "*/*")).status == 200


def test_a_login_and_its_session_over_http2(front: Front) -> None:
    host = "shop.example.com"
    with H2Client(front.port) as client:
        assert client.get(authority=host).value(b":status") == b"401"
        begun = client.get([("accept", "text/html")], authority=host, path="/a?b=c")
        cookie = one_cookie(begun)
        parameters = front.provider.authorize((begun.value(b"location") or b"").decode())
        back = client.get(
            [("cookie", cookie)], authority=host, path=f"/oauth2/callback?{urlencode(parameters)}"
        )
        assert (back.value(b":status"), back.value(b"location")) == (b"302", b"/a?b=c")
        session = one_cookie(back)
        numbers = [
            client.ask([("cookie", "a=\xff"), ("cookie", session)], authority=host)
            for _ in range(4)
        ]
        assert [client.finish(one).value(b":status") for one in numbers] == [b"200"] * 4
    for message in front.origin.take().messages:
        assert message.values(b"x-sub") == [b"jane"]
        assert [one.decode("utf-8", "replace")[:2] for one in message.values(b"cookie")] == ["a="]


def one_cookie(stream: Stream) -> str:
    """Return the only cookie that an answer sets and does not remove."""
    lines = [one.decode() for name, one in stream.fields if name == b"set-cookie"]
    (kept,) = [one for one in lines if "Max-Age=0" not in one]
    return kept.partition(";")[0]


def test_pipelined_requests_each_need_the_session(front: Front) -> None:
    browser = front.browser()
    browser.log_in(front.provider)
    (pair,) = [f"{name}={one}" for name, one in browser.cookies.items()]
    cookies = [pair, f"a=\xe4; {pair}", "a=b", f"{pair}; c=d", "", pair]
    requests = [
        build_request("GET", f"/{at}", browser.host, [("cookie", one)] if one else [])
        for at, one in enumerate(cookies)
    ]
    with Client(("127.0.0.1", front.port)) as client:
        for _ in range(2):  # the session is new to a worker, and known
            client.expect(*["GET"] * len(cookies))
            client.send(b"".join(requests))
            found = [client.read_response().status for _ in cookies]
            assert found == [200, 200, 401, 200, 401, 200]
    messages = front.origin.take().messages
    assert sorted(one.target for one in messages) == sorted([b"/0", b"/1", b"/3", b"/5"] * 2)
    kept = {one.target: one.values(b"cookie") for one in messages}
    assert kept == {b"/0": [], b"/1": [b"a=\xe4"], b"/3": [b"c=d"], b"/5": []}


@pytest.mark.parametrize(
    "response",
    [{"id_token": None}, {"id_token": "a.b.c"}, {"token_type": "mac"}, {"access_token": None}],
)
def test_an_answer_without_a_valid_id_token_is_no_login(
    front: Front, response: dict[str, Any]
) -> None:
    front.provider.response = response
    browser = front.browser()
    answer = browser.call_back(front.provider.authorize(browser.begin()))
    assert answer.status in (401, 503) and browser.sessions == []


def test_a_token_that_another_key_signed_is_no_login(front: Front) -> None:
    front.provider.signs_with = (1, "one")
    browser = front.browser()
    assert browser.call_back(front.provider.authorize(browser.begin())).status == 401


def test_a_callback_needs_the_cookie_of_the_browser_that_began(front: Front) -> None:
    victim, attacker = front.browser(), front.browser()
    mine = front.provider.authorize(attacker.begin())
    assert victim.call_back(mine).status == 400, "login CSRF"
    victim.begin()
    assert victim.call_back(mine).status == 400
    forged = {**mine, "state": mine["state"][:-4] + "____"}
    assert attacker.call_back(forged).status == 400
    assert attacker.call_back(mine).status == 302
    assert attacker.call_back(mine).status == 302, "the page of the callback again, with a session"
    attacker.cookies.clear()
    assert attacker.call_back(mine).status == 400
    assert len(front.provider.posts) == 1


def test_a_code_that_the_provider_rejects_is_no_login(front: Front) -> None:
    browser = front.browser()
    parameters = front.provider.authorize(browser.begin())
    assert browser.call_back({**parameters, "code": "other"}).status == 403
    assert browser.call_back({"error": "access_denied", "state": parameters["state"]}).status == 400
    again = front.provider.authorize(browser.begin())
    assert browser.call_back({"error": "access_denied", "state": again["state"]}).status == 403


def test_the_issuer_of_a_callback_is_checked(front: Front) -> None:
    browser = front.browser()
    parameters = front.provider.authorize(browser.begin())
    assert browser.call_back({**parameters, "iss": "https://mix-up.example.com"}).status == 401
    parameters = front.provider.authorize(browser.begin())
    assert browser.call_back({**parameters, "iss": front.provider.issuer}).status == 302


@pytest.mark.parametrize(
    "target", ["//evil.example.com/a", "/\\evil.example.com", "/?rd=https://evil.example.com"]
)
def test_a_login_returns_to_its_own_host(front: Front, target: str) -> None:
    browser = front.browser()
    answer = browser.get(target)
    if answer.status == 400:  # not a target
        return
    answer = browser.call_back(front.provider.authorize(location(answer)))
    found = location(answer)
    assert found.startswith("/") and found[1:2] not in "/\\" or found == "/"


def test_the_callback_path_without_a_callback_is_a_page(front: Front) -> None:
    browser = front.browser()
    browser.log_in(front.provider)
    assert browser.get("/oauth2/callback?page=2").status == 200
    assert browser.get("/oauth2/callback/more").status == 200


def test_large_tokens_take_several_cookies_and_very_large_ones_are_refused(front: Front) -> None:
    front.provider.claims = {"groups": [f"group-{number:06d}" for number in range(450)]}
    browser = front.browser()
    browser.log_in(front.provider)
    assert 2 <= len(browser.sessions) <= 4
    for _ in range(2):
        assert browser.get("/").status == 200
    for message in front.origin.take().messages:
        assert message.values(b"cookie") == [] and message.values(b"x-sub") == [b"jane"]
    for name in browser.sessions[1:]:
        left = dict(browser.cookies)
        del browser.cookies[name]
        assert browser.get("/", ("accept", "*/*")).status == 401, "a part is missing"
        browser.cookies = left
    front.provider.claims = {}
    before = browser.sessions
    browser.get("/logout")
    browser.log_in(front.provider)
    assert len(before) > len(browser.sessions) == 1
    front.provider.claims = {"groups": ["x" * 2000] * 7}
    large = front.browser()
    assert large.call_back(front.provider.authorize(large.begin())).status in (401, 500)
    assert large.sessions == []


def test_a_stranger_with_one_login_sends_the_provider_one_code(front: Front) -> None:
    stranger = front.browser()
    parameters = front.provider.authorize(stranger.begin())
    before = dict(stranger.cookies)
    for number in range(20):
        stranger.cookies = dict(before)
        answer = stranger.call_back({**parameters, "code": f"junk{number}"})
        assert answer.status == 403
    assert len(front.provider.posts) == 1


def test_a_cookie_that_was_changed_is_no_session(front: Front) -> None:
    browser = front.browser()
    browser.log_in(front.provider)
    (name,) = browser.sessions
    value = browser.cookies[name]
    for at in (0, 1, 5, 20, len(value) // 2, len(value) - 1):
        other = "A" if value[at] != "A" else "B"
        browser.cookies[name] = value[:at] + other + value[at + 1 :]
        assert browser.get("/", ("accept", "*/*")).status == 401, at
    browser.cookies[name] = value
    assert browser.get("/", ("accept", "*/*")).status == 200


def test_logout_ends_the_session_here_and_at_the_provider(front: Front) -> None:
    browser = front.browser()
    browser.log_in(front.provider)
    cross = (("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "navigate"))
    assert browser.get("/logout", *cross).status == 403 and browser.sessions
    answer = browser.get("/logout", ("sec-fetch-site", "same-origin"))
    parts = urlsplit(location(answer))
    said = parse_qs(parts.query)
    assert answer.status == 302 and parts.path == "/realm/end"
    assert said["client_id"] == [CLIENT] and said["id_token_hint"][0].count(".") == 2
    assert said["post_logout_redirect_uri"] == ["http://shop.example.com/"]
    assert browser.sessions == [] and browser.get("/", ("accept", "*/*")).status == 401
    assert front.origin.take().messages == []


def test_logout_revokes_the_refresh_token_once_and_does_not_wait(front: Front) -> None:
    provider = front.provider
    browser, other, before = front.browser(), front.browser(), set(provider.refresh_tokens)
    for one in (browser, other):
        one.log_in(provider)
    mine = set(provider.refresh_tokens) - before

    def revoked() -> list[str]:
        forms = [one for one in provider.revoked if one["token"] in mine]
        assert {one["token_type_hint"] for one in forms} <= {"refresh_token"}
        return sorted(one["token"] for one in forms)

    kept = dict(browser.cookies)
    for _ in range(3):  # a copy of the cookies
        browser.cookies = dict(kept)
        assert browser.get("/logout", ("sec-fetch-site", "none")).status == 302
    provider.delay = 1.0
    began = time.monotonic()
    assert other.get("/logout", ("sec-fetch-site", "none")).status == 302
    assert time.monotonic() - began < 1.0
    end = time.monotonic() + 10
    while set(revoked()) != mine:
        assert time.monotonic() < end
        time.sleep(0.02)
    assert revoked() == sorted(mine)
    sent = len(provider.revoked)
    assert front.browser().get("/logout", ("sec-fetch-site", "none")).status == 302
    assert len(provider.revoked) == sent, "without a session nothing is sent"
    page = front.run.get(front.run.admin, "/metrics")[1]
    family = 'edgefast_oidc_token_requests_total{policy="default/login",kind='
    assert family + '"logout",result="ok"}' in page and family + '"login",result="ok"}' in page


def test_a_session_outlives_its_provider(front: Front) -> None:
    browser = front.browser()
    browser.log_in(front.provider)
    front.provider.down = True
    assert browser.get("/").status == 200
    other = front.browser()
    assert other.call_back(front.provider.authorize(other.begin())).status == 503
    assert other.sessions == []


def test_logs_have_no_code_state_cookie_or_token(front: Front) -> None:
    browser = front.browser()
    parameters = front.provider.authorize(browser.begin())
    browser.call_back(parameters)
    browser.get("/after")
    deadline = time.monotonic() + 10
    while "/after" not in front.log.read_text():
        assert time.monotonic() < deadline
        time.sleep(0.05)
    said = front.log.read_text() + front.run.said + front.run.logged
    secrets = [*parameters.values(), *browser.cookies.values(), SECRET]
    assert [one for one in secrets if one in said] == []
    assert '"user":"jane"' in said.replace(" ", "")
