"""Sessions of logged-in browsers over time: refresh, expiry, edits of the policy, restarts, and what goes to backends."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.auth.jwt import issuer
from wire.oidc.browser import Browser, location, values
from wire.oidc.test_logins import Front, start

SCRIPT = (("accept", "*/*"),)


@pytest.fixture
def begin(tmp_path: Path) -> Iterator[Callable[..., Front]]:
    fronts: list[Iterator[Front]] = []

    def make(**oidc: Any) -> Front:
        fronts.append(start(tmp_path, **oidc))
        return next(fronts[-1])

    yield make
    for one in fronts:
        for _ in one:
            pass


def until(check: Callable[[], Any], what: str, seconds: float = 20.0) -> None:
    end = time.monotonic() + seconds
    while not check():
        assert time.monotonic() < end, what
        time.sleep(0.02)


def test_tokens_are_refreshed_once_for_all_requests(begin: Callable[..., Front]) -> None:
    front = begin(forwardAccessToken=True)
    provider = front.provider
    provider.lifetime = 3
    browser = front.browser()
    browser.log_in(provider)
    before = dict(browser.cookies)

    def refreshes() -> int:
        return sum(one["grant_type"] == "refresh_token" for one in provider.posts)

    def ask(_: int) -> int:
        one = Browser(front.port)
        one.cookies = dict(before)
        return one.get("/", *SCRIPT).status

    assert browser.get("/", *SCRIPT).status == 200 and refreshes() == 0
    until(lambda: browser.get("/", *SCRIPT).status == 200 and refreshes(), "no refresh")
    assert browser.cookies != before, "the browser has the new session"
    with ThreadPoolExecutor(8) as pool:  # over both workers, with the old cookies
        assert set(pool.map(ask, range(24))) == {200}
    assert refreshes() == 1
    tokens = {one.values(b"authorization")[0] for one in front.origin.take().messages}
    assert len(tokens) == 2 and all(one.startswith(b"Bearer access-") for one in tokens)


def test_a_refresh_that_is_rejected_is_a_new_login(begin: Callable[..., Front]) -> None:
    front = begin()
    front.provider.lifetime = 2
    browser = front.browser()
    browser.log_in(front.provider)
    front.provider.refresh_tokens.clear()
    until(lambda: browser.get("/", *SCRIPT).status == 401, "still a session")
    assert browser.sessions == [], "the session is removed"
    browser.log_in(front.provider)


def test_a_provider_that_is_down_ends_no_session_before_its_time(
    begin: Callable[..., Front],
) -> None:
    front = begin()
    front.provider.lifetime = 4
    browser = front.browser()
    browser.log_in(front.provider)
    front.provider.down = True
    began = time.monotonic()
    until(lambda: browser.get("/", *SCRIPT).status == 503, "it never ends")
    assert time.monotonic() - began > 3, "valid tokens are enough"
    front.provider.down = False
    until(lambda: browser.get("/", *SCRIPT).status == 200, "no refresh after the outage")


def test_a_session_without_refresh_ends_with_its_tokens(begin: Callable[..., Front]) -> None:
    front = begin(refreshToken=False)
    front.provider.lifetime = 2
    browser = front.browser()
    browser.log_in(front.provider)
    assert browser.get("/", *SCRIPT).status == 200
    until(lambda: browser.get("/", *SCRIPT).status == 401, "it does not end")
    assert browser.get("/").status == 302


def test_another_subject_in_a_refresh_ends_the_session(begin: Callable[..., Front]) -> None:
    front = begin()
    front.provider.lifetime = 2
    browser = front.browser()
    browser.log_in(front.provider)
    front.provider.claims = {"sub": "mallory"}
    until(lambda: browser.get("/", *SCRIPT).status == 401, "the session goes on as another user")


def test_a_session_survives_edits_of_its_policy_and_new_keys_of_the_provider(
    begin: Callable[..., Front],
) -> None:
    front = begin()
    browser = front.browser()
    browser.log_in(front.provider)
    front.write(claimToHeaders=[{"header": "x-user", "claim": "sub"}])
    until(
        lambda: (
            browser.get("/", *SCRIPT).status == 200
            and front.origin.take().messages[-1].values(b"x-user") == [b"jane"]
        ),
        "the edit has no effect",
    )
    front.provider.keys = [issuer.jwk("ES256", 1, kid="two")]
    front.provider.signs_with = (1, "two")
    assert browser.get("/", *SCRIPT).status == 200
    for _ in range(4):
        front.browser().log_in(front.provider)


def test_a_client_with_another_secret_does_not_share_sessions(begin: Callable[..., Front]) -> None:
    front = begin()
    browser = front.browser()
    browser.log_in(front.provider)
    text = front.file.read_text()
    changed = text.replace("p%ss word:1", "another")
    assert changed != text
    front.file.write_text(changed)
    until(lambda: browser.get("/", *SCRIPT).status == 401, "the session is still valid")


def test_tokens_and_cookies_as_the_policy_sets_them(begin: Callable[..., Front]) -> None:
    front = begin(
        cookieDomain="example.com",
        cookieConfig={"sameSite": "Strict"},
        forwardIDToken={"header": "x-id-token"},
        denyRedirect={"headers": [{"name": "x-client", "type": "Prefix", "value": "app"}]},
        scopes=["profile"],
        logoutPath="/leave",
    )
    browser = front.browser()
    assert browser.get("/", ("accept", "text/html"), ("x-client", "app/2")).status == 401
    answer = browser.call_back(front.provider.authorize(browser.begin("/a?b=1&c=2")))
    assert answer.status == 200 and b'content="0;url=/a?b=1&amp;c=' in answer.body
    assert values(answer, "content-type") == ["text/html; charset=utf-8"]
    (name,) = browser.sessions
    assert name.startswith("__Secure-edge-session-")
    assert "Domain=example.com" in browser.attributes[name]
    assert "SameSite=Strict" in browser.attributes[name]
    assert browser.get("/", ("x-id-token", "forged")).status == 200
    (message,) = front.origin.take().messages
    (token,) = message.values(b"x-id-token")
    assert token.count(b".") == 2
    assert browser.get("/logout").status == 200, "a page of the backend"
    assert location(browser.get("/leave")).startswith(front.provider.issuer)
    other = front.browser("other.example.com")
    other.cookies = {name: "1AAAA"}
    assert other.get("/").status == 302
    assert "scope=openid+profile" in location(other.get("/"))


def test_a_log_of_locations_has_no_id_token(begin: Callable[..., Front]) -> None:
    front = begin()
    front.lines = {"template": "%REQ(:PATH)% to %RESP(LOCATION)%"}
    front.write()
    until(lambda: front.browser().get("/") and "/ to http" in front.log.read_text(), "old lines")
    browser = front.browser()
    browser.log_in(front.provider)
    assert "id_token_hint=" in location(browser.get("/logout"))
    until(lambda: "/logout to http" in front.log.read_text(), "no line")
    assert "id_token_hint" not in front.log.read_text()


def test_discovery_that_fails_closes_the_place_until_it_works(begin: Callable[..., Front]) -> None:
    front = begin()
    assert front.provider.issuer in location(front.browser().get("/"))
    front.provider.document = {"issuer": "https://other.example.com"}
    other = front.provider.issuer + "/"  # a source of its own
    front.write(provider={"issuer": other, "backendRefs": [{"name": "idp", "port": 80}]})
    until(lambda: front.browser().get("/").status == 503, "it is open")
    until(
        lambda: (
            "KeysNotFetched" in front.run.get(front.run.admin, "/problems")[1]
            or "of another issuer" in front.run.said
        ),
        "it is not reported",
    )
    assert front.browser().get("/", *SCRIPT).status == 401
    assert front.origin.take().messages == []


def test_clients_with_a_token_skip_the_login_and_rules_read_the_claims_of_both(
    begin: Callable[..., Front],
) -> None:
    front = begin(passThroughAuthHeader=True, forwardAccessToken=True)
    front.more = {
        "jwt": {
            "providers": [
                {
                    "name": "machines",
                    "issuer": front.provider.issuer,
                    "audiences": ["machines"],
                    "remoteJWKS": {
                        "uri": f"{front.provider.issuer}/keys",
                        "backendRefs": [{"name": "idp", "port": 80}],
                    },
                }
            ]
        },
        "authorization": {
            "rules": [
                {
                    "action": "Allow",
                    "principal": {
                        "jwt": {
                            "provider": "oidc",
                            "claims": [{"name": "role", "values": ["staff"]}],
                        }
                    },
                },
                {"action": "Allow", "principal": {"jwt": {"provider": "machines"}}},
            ]
        },
    }
    front.write()
    front.provider.claims = {"role": "staff"}
    staff = front.browser()
    until(
        lambda: all(front.browser().get("/").status == 302 for _ in range(16)),
        "a worker has no table with jwt",
    )
    staff.log_in(front.provider)
    until(lambda: staff.get("/", *SCRIPT).status == 200, "no access")
    front.provider.claims = {"role": "guest"}
    guest = front.browser()
    guest.log_in(front.provider)
    assert guest.get("/", *SCRIPT).status == 403
    front.origin.take()
    now = int(time.time())
    token = issuer.token(
        "ES256", 0, {"kid": "one"}, iss=front.provider.issuer, aud="machines", iat=now, exp=now + 60
    ).decode()
    machine = front.browser()
    bearer = ("authorization", f"Bearer {token}")
    assert machine.get("/", *SCRIPT, bearer).status == 200
    (message,) = front.origin.take().messages
    assert message.values(b"authorization") == [bearer[1].encode()]
    assert machine.get("/", *SCRIPT, ("authorization", "Bearer x.y.z")).status == 401
    assert guest.get("/", *SCRIPT, bearer).status == 200, "its token decides"
    (message,) = front.origin.take().messages
    assert message.values(b"cookie") == []
    assert machine.get("/", *SCRIPT).status == 401 and machine.get("/").status == 302
