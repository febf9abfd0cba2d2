"""edgefast while its provider fails: down at the start, down later, endless or wrong metadata, policies that change."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from identity_provider.edgefast_site import EdgefastSite
from identity_provider.hostile import HostileProvider
from identity_provider.provider import Client
from identity_provider.site import AFTER_LOGOUT, CALLBACK
from identity_provider.user_agent import NAVIGATION, UserAgent
from identity_provider.web_server import Answer
from wire.harness.certificates import Authority, Pair

Front = tuple[EdgefastSite, HostileProvider, Client]

pytestmark = pytest.mark.wire


@pytest.fixture(scope="module")
def site(authority: Authority, pair: Pair) -> Iterator[EdgefastSite]:
    running = EdgefastSite("app.example.test", pair, ca=authority.pem)
    yield running
    running.stop()


@pytest.fixture
def front(site: EdgefastSite) -> Iterator[Front]:
    """The site, and a provider of the test's own that does not listen yet."""
    provider = HostileProvider(listening=False)
    client = provider.register(f"{site.origin}{CALLBACK}", f"{site.origin}{AFTER_LOGOUT}")
    site.calls.clear()
    yield site, provider, client
    provider.stop()


def wait_for_status(site: EdgefastSite, agent: UserAgent, status: int) -> None:
    """Navigate until the answer has this status."""
    deadline = time.monotonic() + 60
    while True:
        found = agent.request("GET", f"{site.origin}/", headers=NAVIGATION).status_code
        if found == status:
            return
        assert time.monotonic() < deadline, found
        time.sleep(0.05)


def test_provider_that_starts_later(front: Front, agent: UserAgent) -> None:
    site, provider, client = front
    site.apply(provider.issuer, client)
    assert agent.request("GET", f"{site.origin}/", headers=NAVIGATION).status_code == 503
    assert site.calls == []
    provider.start()
    wait_for_status(site, agent, 302)
    assert agent.follow(f"{site.origin}/").status == 200
    provider.stop()
    # A session needs no provider; a login does.
    assert agent.fetch(f"{site.origin}/").status_code == 200
    with UserAgent() as other:
        assert other.fetch(f"{site.origin}/").status_code == 401
    provider.start()
    with UserAgent() as other:
        assert other.follow(f"{site.origin}/").status == 200


@pytest.mark.parametrize(
    "answer",
    [
        Answer(200, b"{", {"content-type": "application/json"}, endless=True),
        Answer(302, headers={"location": "/elsewhere"}),
        Answer(200, b'{"issuer": "https://issuer.test"}', {"content-type": "application/json"}),
        Answer(500, b"error"),
    ],
    ids=["endless", "redirect", "other-issuer", "error"],
)
def test_metadata_that_is_not_used(front: Front, agent: UserAgent, answer: Answer) -> None:
    site, provider, client = front
    provider.switches.answers["discovery"] = answer
    provider.start()
    site.apply(provider.issuer, client)
    provider.wait_for_calls("discovery", 1)
    assert agent.request("GET", f"{site.origin}/", headers=NAVIGATION).status_code == 503
    assert provider.count("other") == 0 and site.calls == []
    provider.switches.answers.clear()
    wait_for_status(site, agent, 302)


@pytest.mark.parametrize(
    "answer",
    [
        Answer(200, b"{", {"content-type": "application/json"}, endless=True),
        Answer(307, headers={"location": "/elsewhere"}),
        Answer(200, b"[]", {"content-type": "application/json"}),
        Answer(200, b"not JSON", {"content-type": "application/json"}),
        Answer(400, b'{"error": "invalid_grant"}', {"content-type": "application/json"}),
        Answer(500, b"error"),
    ],
    ids=["endless", "redirect", "list", "text", "invalid-grant", "error"],
)
def test_tokens_that_do_not_come(front: Front, agent: UserAgent, answer: Answer) -> None:
    site, provider, client = front
    provider.start()
    site.use(provider.issuer, client)
    provider.switches.answers["token"] = answer
    page = agent.follow(f"{site.origin}/")
    assert page.status in (401, 403, 502, 503, 504), page
    assert provider.count("other") == 0 and site.calls == []
    assert agent.fetch(f"{site.origin}/").status_code == 401


@pytest.mark.heavy  # keys are fetched again after 10 s at the earliest
def test_keys_that_are_replaced(front: Front, agent: UserAgent) -> None:
    """Logins with a new key begin as soon as edgefast has fetched it; sessions of the old key stay."""
    site, provider, client = front
    provider.start()
    site.use(provider.issuer, client)
    assert agent.follow(f"{site.origin}/").status == 200
    provider.rotate_keys(keep=False)
    deadline = time.monotonic() + 60
    with UserAgent() as other:
        while (status := other.follow(f"{site.origin}/").status) != 200:
            assert status in (401, 503) and time.monotonic() < deadline, status
            time.sleep(0.2)
    assert agent.fetch(f"{site.origin}/").status_code == 200


def test_answer_that_is_too_large(front: Front, agent: UserAgent) -> None:
    site, provider, client = front
    provider.start()
    site.use(provider.issuer, client)
    provider.switches.id_token_bytes = 100_000
    assert agent.follow(f"{site.origin}/").status >= 400
    assert agent.fetch(f"{site.origin}/").status_code == 401 and site.calls == []


def test_session_survives_an_edit_of_its_policy(front: Front, agent: UserAgent) -> None:
    site, provider, client = front
    provider.start()
    site.use(provider.issuer, client)
    assert agent.follow(f"{site.origin}/").status == 200
    asked = provider.count("token")
    site.apply(provider.issuer, client, {"logoutPath": "/sign-out"})
    for _ in range(20):
        assert agent.fetch(f"{site.origin}/").status_code == 200
    assert provider.count("token") == asked
    # The session belongs to its client: another one needs a login.
    other = provider.register(client.redirect_uri, client.after_logout)
    site.use(provider.issuer, other)
    assert agent.fetch(f"{site.origin}/").status_code == 401


@pytest.mark.parametrize("known", [True, False], ids=["known", "unknown"])
def test_provider_with_https(
    site: EdgefastSite, authority: Authority, agent: UserAgent, known: bool
) -> None:
    """The certificate of a provider is verified: by another authority there are no logins."""
    issued_by = authority if known else Authority("another authority")
    context = issued_by.server_context(issued_by.issue(["localhost"]))
    provider = HostileProvider(context=context)
    client = provider.register(f"{site.origin}{CALLBACK}", f"{site.origin}{AFTER_LOGOUT}")
    try:
        if known:
            site.use(provider.issuer, client)
            assert agent.follow(f"{site.origin}/").status == 200
        else:
            site.apply(provider.issuer, client)
            assert agent.request("GET", f"{site.origin}/", headers=NAVIGATION).status_code == 503
            assert provider.calls == []
    finally:
        provider.stop()
