"""What a site behind a login promises, as its clients see it: browsers without scripts, and requests that no browser sends."""

from __future__ import annotations

import threading
import time
from urllib.parse import parse_qs, quote, urlsplit

import httpx
import pytest

from identity_provider.hostile import HostileProvider
from identity_provider.provider import USER
from identity_provider.site import AFTER_LOGOUT, CALLBACK, LOGINS, LOGOUT, Site
from identity_provider.user_agent import FETCH, NAVIGATION, Page, UserAgent

DEEP = "/orders/7?sort=date&page=2"


def assert_shows(page: Page, user: str, path: str) -> None:
    """A page behind the login names its user and its path."""
    assert page.status == 200, page
    assert f'"user": "{user}"' in page.text and f'"path": "{path}"' in page.text, page.text


def begin(agent: UserAgent, site: Site, path: str = "/") -> str:
    """Start a login; returns the URL of the provider."""
    answer = agent.request("GET", f"{site.origin}{path}", headers=NAVIGATION)
    assert answer.status_code == 302
    return str(answer.headers["location"])


def callback(agent: UserAgent, site: Site, url: str) -> str:
    """Sign in at the provider; returns the callback URL without requesting it."""
    return agent.follow(url, until=f"{site.origin}{CALLBACK}").url


def load(agent: UserAgent, url: str) -> httpx.Response:
    """Request one page as a navigation."""
    return agent.request("GET", url, headers=NAVIGATION)


def test_login_returns_to_the_page(site: Site, agent: UserAgent, hostile: HostileProvider) -> None:
    page = agent.follow(f"{site.origin}{DEEP}")
    assert page.url == f"{site.origin}{DEEP}"
    assert_shows(page, USER, "/orders/7")
    assert hostile.count("token") == 1
    # The session answers the next request without the provider.
    assert_shows(agent.follow(f"{site.origin}/again"), USER, "/again")
    assert (hostile.count("authorize"), hostile.count("token")) == (1, 1)


def test_authorization_request(site: Site, agent: UserAgent) -> None:
    first, second = (
        {name: values[0] for name, values in parse_qs(urlsplit(begin(agent, site)).query).items()}
        for _ in range(2)
    )
    assert first["response_type"] == "code" and first["code_challenge_method"] == "S256"
    assert "openid" in first["scope"].split()
    assert first["redirect_uri"] == f"{site.origin}{CALLBACK}"
    for name in ("state", "nonce", "code_challenge"):
        assert len(first[name]) >= 22 and first[name] != second[name], name


def test_cookies_are_of_this_host_alone(site: Site, agent: UserAgent) -> None:
    agent.follow(f"{site.origin}/")
    host = urlsplit(site.origin).hostname
    cookies = [one for one in agent.jar if one.domain == host]
    assert cookies
    for one in cookies:
        assert one.name.startswith("__Host-") and one.secure and one.path == "/"
        assert not one.domain_specified
        assert one.has_nonstandard_attr("HttpOnly"), one
        assert one.get_nonstandard_attr("SameSite") == "Lax"


def test_logins_in_several_tabs(site: Site, agent: UserAgent) -> None:
    """Each login has a state of its own: all of them end at their page (envoyproxy/gateway#7205)."""
    urls = [begin(agent, site, f"/tab/{number}") for number in range(LOGINS)]
    callbacks = [callback(agent, site, url) for url in urls]
    for number in (3, 0, 7, 1, 2, 6, 5, 4):
        answer = load(agent, callbacks[number])
        assert answer.status_code == 302, answer.text
        assert answer.headers["location"] in (
            f"/tab/{number}",
            f"{site.origin}/tab/{number}",
        )


def test_number_of_logins(site: Site, agent: UserAgent) -> None:
    """One login more than LOGINS ends one of those before; the newest one goes on."""
    urls = [begin(agent, site, f"/tab/{number}") for number in range(LOGINS + 1)]
    ended = [load(agent, callback(agent, site, url)).headers.get("location", "") for url in urls]
    assert ended[-1].endswith(f"/tab/{LOGINS}")
    assert sum("/tab/" in one for one in ended) == LOGINS


@pytest.mark.parametrize(
    "target",
    [
        "//evil.test/",
        "/\\evil.test/",
        "/%5cevil.test/",
        "/%2f/evil.test",
        "/x?rd=https://evil.test/",
        "/x?return_to=//evil.test",
        "/%0d%0alocation:%20https://evil.test/",
    ],
)
def test_return_url_is_of_the_same_origin(site: Site, agent: UserAgent, target: str) -> None:
    answer = load(agent, f"{site.origin}{target}")
    if (
        answer.status_code == 302
    ):  # the login; others redirect to the normal form of the path, or refuse it
        answer = load(agent, callback(agent, site, answer.headers["location"]))
    elif answer.status_code != 307:
        assert 400 <= answer.status_code < 500
        return
    back = answer.headers["location"]
    # As a browser reads it: a backslash is a slash, and two of them begin a host.
    assert not back.replace("\\", "/").startswith("//")
    assert urlsplit(back).netloc in ("", urlsplit(site.origin).netloc), back


def test_forged_state(site: Site, agent: UserAgent, hostile: HostileProvider) -> None:
    begin(agent, site)
    for query in ("", "code=stolen", "code=stolen&state=forged", "state=forged", "error=x&state=y"):
        answer = load(agent, f"{site.origin}{CALLBACK}?{query}")
        assert answer.status_code != 200
    assert hostile.count("token") == 0
    assert_no_session(site, agent)


def assert_no_session(site: Site, agent: UserAgent) -> None:
    """A script's request without a session gets 401."""
    assert agent.fetch(f"{site.origin}/").status_code == 401


def test_callback_of_another_browser(
    site: Site, agent: UserAgent, hostile: HostileProvider
) -> None:
    """Login CSRF: the attacker's callback URL in the victim's browser, which has a login of its own in progress."""
    attacker = UserAgent(None, "mallory")
    with attacker:
        stolen = callback(attacker, site, begin(attacker, site))
    begin(agent, site)
    assert load(agent, stolen).status_code != 200
    assert hostile.count("token") == 0
    assert_no_session(site, agent)


def test_callback_is_used_once(site: Site, agent: UserAgent, hostile: HostileProvider) -> None:
    used = callback(agent, site, begin(agent, site, "/once"))
    assert load(agent, used).headers["location"].endswith("/once")
    asked = hostile.count("token")
    # With a session the second use may lead back to a page; it never asks the provider with the old code.
    load(agent, used)
    assert hostile.count("token") == asked


@pytest.mark.parametrize("path", ["/x/oauth2/callback", "/oauth2/callback/x", "/OAuth2/callback"])
def test_callback_is_one_path(site: Site, agent: UserAgent, path: str) -> None:
    agent.follow(f"{site.origin}/")
    assert_shows(agent.follow(f"{site.origin}{path}?code=a&state=b"), USER, path)


@pytest.mark.parametrize(
    ("method", "headers"),
    [
        ("GET", FETCH),
        ("GET", {**FETCH, "sec-fetch-mode": "no-cors", "sec-fetch-dest": "image"}),
        ("POST", {**FETCH, "content-type": "application/json"}),
    ],
)
def test_requests_of_scripts_get_401(
    site: Site, agent: UserAgent, method: str, headers: dict[str, str]
) -> None:
    answer = agent.request(method, f"{site.origin}/api", headers=headers)
    assert answer.status_code == 401
    assert "www-authenticate" in answer.headers and "location" not in answer.headers
    assert "set-cookie" not in answer.headers
    agent.follow(f"{site.origin}/")
    assert agent.fetch(f"{site.origin}/api").status_code == 200


def test_logout(site: Site, agent: UserAgent, hostile: HostileProvider) -> None:
    agent.follow(f"{site.origin}/")
    answer = load(agent, f"{site.origin}{LOGOUT}")
    assert answer.status_code == 302
    after = f"{site.origin}{AFTER_LOGOUT}"
    assert agent.follow(answer.headers["location"], until=after).url == after
    sent = hostile.last("logout").query
    assert sent["id_token_hint"].count(".") == 2
    assert sent["post_logout_redirect_uri"] == f"{site.origin}{AFTER_LOGOUT}"
    assert_no_session(site, agent)


def test_logout_from_another_site(site: Site, agent: UserAgent) -> None:
    agent.follow(f"{site.origin}/")
    headers = {**NAVIGATION, "sec-fetch-site": "cross-site"}
    assert agent.request("GET", f"{site.origin}{LOGOUT}", headers=headers).status_code == 403
    assert agent.fetch(f"{site.origin}/").status_code == 200


@pytest.mark.parametrize(
    "claims",
    [
        {"nonce": "of another login"},
        {"aud": "another client"},
        {"iss": "https://issuer.test"},
        {"exp": 1},
    ],
    ids=str,
)
def test_wrong_claims(
    site: Site, agent: UserAgent, hostile: HostileProvider, claims: dict[str, object]
) -> None:
    hostile.switches.claims = claims
    assert load(agent, callback(agent, site, begin(agent, site))).status_code not in (200, 302)
    assert_no_session(site, agent)


@pytest.mark.parametrize("algorithm", ["none", "HS256", "HS256-public-key"])
def test_tokens_without_a_signature(
    site: Site, agent: UserAgent, hostile: HostileProvider, algorithm: str
) -> None:
    hostile.switches.algorithm = algorithm
    assert load(agent, callback(agent, site, begin(agent, site))).status_code not in (200, 302)
    assert_no_session(site, agent)


def test_provider_that_refuses(site: Site, agent: UserAgent, hostile: HostileProvider) -> None:
    hostile.switches.callback = {"code": None, "error": "access_denied<script>"}
    answer = load(agent, callback(agent, site, begin(agent, site)))
    assert 400 <= answer.status_code < 500
    assert "<script>" not in answer.text
    assert hostile.count("token") == 0
    assert_no_session(site, agent)


@pytest.mark.parametrize("size", [3_000, 6_000, 10_000])
def test_large_id_tokens(site: Site, agent: UserAgent, hostile: HostileProvider, size: int) -> None:
    """The session is in as many cookies as it needs, and each of them is one that browsers keep (4,096 bytes)."""
    hostile.switches.id_token_bytes = size
    assert_shows(agent.follow(f"{site.origin}/large"), USER, "/large")
    host = urlsplit(site.origin).hostname
    for one in agent.jar:
        if one.domain == host:
            assert len(one.name) + len(one.value or "") < 4096
    assert agent.fetch(f"{site.origin}/").status_code == 200


def test_access_token_that_does_not_fit(
    site: Site, agent: UserAgent, hostile: HostileProvider
) -> None:
    """The access token is dropped before the login fails."""
    hostile.switches.access_token_bytes = 20_000
    assert_shows(agent.follow(f"{site.origin}/huge"), USER, "/huge")


def test_answer_without_access_token(
    site: Site, agent: UserAgent, hostile: HostileProvider
) -> None:
    """RFC 6749 section 5.1 requires the access token, beside an ID token too."""
    hostile.switches.token_fields = {"access_token": None}
    assert agent.follow(f"{site.origin}/only-id-token").status >= 400
    assert_no_session(site, agent)


def test_changed_cookies(site: Site, agent: UserAgent) -> None:
    """A session cookie with one other character is no session."""
    agent.follow(f"{site.origin}/")
    host = urlsplit(site.origin).hostname
    (session,) = [one for one in agent.jar if one.domain == host]
    value = session.value or ""
    for at in (0, len(value) // 2, len(value) - 2):
        changed = value[:at] + ("A" if value[at] != "A" else "B") + value[at + 1 :]
        answer = fetch_with(site, agent, f"{session.name}={changed}")
        assert answer.status_code == 401, at
    assert fetch_with(site, agent, f"{session.name}={value}").status_code == 200


def fetch_with(site: Site, agent: UserAgent, cookie: str) -> httpx.Response:
    """Send a script's request with exactly these cookies."""
    held = list(agent.jar)
    agent.jar.clear()
    try:
        return agent.request("GET", f"{site.origin}/", headers={**FETCH, "cookie": cookie})
    finally:
        for one in held:
            agent.jar.set_cookie(one)


def test_slow_token_endpoint_holds_up_one_login(site: Site, hostile: HostileProvider) -> None:
    """Others with a session are served while a token endpoint does not answer."""
    with UserAgent() as signed_in, UserAgent() as waiting:
        signed_in.follow(f"{site.origin}/")
        asked = hostile.count("token")
        slow = callback(waiting, site, begin(waiting, site, "/slow"))
        hostile.switches.held = {"token"}
        answers: list[httpx.Response] = []
        thread = threading.Thread(target=lambda: answers.append(load(waiting, slow)))
        thread.start()
        try:
            hostile.wait_for_calls("token", asked + 1)
            assert signed_in.fetch(f"{site.origin}/").status_code == 200
            assert answers == []
        finally:
            hostile.release()
            thread.join(30)
    assert answers[0].headers["location"].endswith("/slow")


def test_error_texts_are_escaped(site: Site, agent: UserAgent) -> None:
    state = quote("<script>alert(1)</script>")
    answer = load(agent, f"{site.origin}{CALLBACK}?state={state}&error={state}")
    assert "<script>" not in answer.text


def test_refresh_is_one_call(site: Site, agent: UserAgent, hostile: HostileProvider) -> None:
    """Requests that arrive while a refresh is in progress wait for it; the refresh token is used once."""
    hostile.switches.seconds = 2
    agent.follow(f"{site.origin}/")
    cookie = "; ".join(
        f"{one.name}={one.value}"
        for one in agent.jar
        if one.domain == urlsplit(site.origin).hostname
    )
    hostile.switches.seconds = 3600
    hostile.switches.held = {"token"}
    statuses: list[int] = []

    def ask() -> None:
        with UserAgent() as other:
            answer = other.request("GET", f"{site.origin}/", headers={**FETCH, "cookie": cookie})
            statuses.append(answer.status_code)

    threads: list[threading.Thread] = []
    try:
        deadline = time.monotonic() + 20
        while hostile.count("token") < 2:  # the token expires soon
            assert time.monotonic() < deadline
            threads.append(threading.Thread(target=ask))
            threads[-1].start()
            time.sleep(0.1)
        for _ in range(8):
            threads.append(threading.Thread(target=ask))
            threads[-1].start()
    finally:
        hostile.release()
        for thread in threads:
            thread.join(30)
    assert set(statuses) == {200} and len(statuses) == len(threads)
    assert (hostile.count("token"), hostile.reused_refresh_tokens) == (2, 0)


def test_refresh_that_fails_is_a_new_login(
    site: Site, agent: UserAgent, hostile: HostileProvider
) -> None:
    hostile.switches.seconds = 2
    hostile.switches.refresh = "refuse"
    agent.follow(f"{site.origin}/")
    deadline = time.monotonic() + 20
    while agent.fetch(f"{site.origin}/").status_code != 401:
        assert time.monotonic() < deadline
        time.sleep(0.1)
    hostile.switches.seconds = 3600
    assert_shows(agent.follow(f"{site.origin}/later"), USER, "/later")


@pytest.mark.parametrize("offset", [-4, 4])
def test_clock_of_the_provider(
    site: Site, agent: UserAgent, hostile: HostileProvider, offset: int
) -> None:
    hostile.switches.clock_offset = offset
    assert_shows(agent.follow(f"{site.origin}/clock"), USER, "/clock")


def test_clock_that_is_far_behind(site: Site, agent: UserAgent, hostile: HostileProvider) -> None:
    """Tokens that ended an hour ago."""
    hostile.switches.clock_offset = -7200
    assert load(agent, callback(agent, site, begin(agent, site))).status_code not in (200, 302)
    assert_no_session(site, agent)
