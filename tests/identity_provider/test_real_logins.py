"""edgefast with providers that others wrote: login, session, refresh and logout, in Chromium and without scripts."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest

from console.browser import Browser
from identity_provider.browser import Window, window
from identity_provider.edgefast_site import EdgefastSite
from identity_provider.provider import IdentityProvider
from identity_provider.site import AFTER_LOGOUT, CALLBACK, LOGOUT
from identity_provider.user_agent import UserAgent
from wire.harness.certificates import Pair

pytestmark = pytest.mark.wire

HOST = "app.example.test"


@pytest.fixture(scope="module")
def site(provider: IdentityProvider, pair: Pair) -> Iterator[EdgefastSite]:
    running = EdgefastSite(HOST, pair)
    client = provider.register(f"{running.origin}{CALLBACK}", f"{running.origin}{AFTER_LOGOUT}")
    try:
        running.use(provider.issuer, client)
        yield running
    finally:
        running.stop()


@pytest.fixture
def opened(browser: Browser) -> Iterator[Window]:
    with window(browser) as one:
        yield one


def test_login_in_a_browser(site: EdgefastSite, opened: Window) -> None:
    tab = opened.tab()
    tab.sign_in(f"{site.origin}/orders?page=2")
    assert tab.url == f"{site.origin}/orders?page=2"
    assert '"path": "/orders"' in tab.text and '"user": ""' not in tab.text
    tab.reload()
    assert tab.fetch("/api")["status"] == 200
    # The provider ends its own session: the next login needs the form again.
    tab.open(f"{site.origin}{LOGOUT}")
    tab.wait(tab.has_form, "a form")
    assert opened.cookies("__Host-edge-session") == []


def test_second_tab_needs_no_form(site: EdgefastSite, opened: Window) -> None:
    first, second = opened.tab(), opened.tab()
    first.sign_in(f"{site.origin}/first")
    second.open(f"{site.origin}/second")
    second.wait_for(f"{site.origin}/second")
    assert '"path": "/second"' in second.text


def test_login_without_scripts(site: EdgefastSite, agent: UserAgent) -> None:
    page = agent.follow(f"{site.origin}/plain")
    assert page.status == 200 and page.forms == 1
    # A session of this host alone: the provider's cookies stay at the provider.
    host = urlsplit(site.origin).hostname
    assert [one.name for one in agent.jar if one.domain == host]
    assert "cookie" not in site.calls[-1].headers
    forms = agent.follow(f"{site.origin}/again").forms
    assert forms == 0
