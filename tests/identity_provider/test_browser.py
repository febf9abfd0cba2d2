"""Logins in Chromium: tabs, reload, back button, fetch(), cookies of siblings, links of other sites."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest

from identity_provider.browser import Window
from identity_provider.hostile import HostileProvider
from identity_provider.provider import USER
from identity_provider.site import LOGINS, LOGOUT, OPEN, Site
from identity_provider.web_server import Answer, Call, WebServer
from wire.harness.certificates import Authority, Pair


@pytest.fixture
def form(hostile: HostileProvider) -> HostileProvider:
    """The provider with a login form."""
    hostile.switches.login_form = True
    return hostile


@pytest.fixture
def sibling(authority: Authority, pair: Pair) -> Iterator[str]:
    """The origin of an attacker at a sibling subdomain of the site; its page sets the cookies of its query."""

    def answer(call: Call) -> Answer:
        cookies = (call.query["cookie"],) if "cookie" in call.query else ()
        html = {"content-type": "text/html"}
        return Answer(
            200, b"<!doctype html><link rel=icon href=data:,>ready", html, cookies=cookies
        )

    server = WebServer(answer, context=authority.server_context(pair))
    yield f"https://evil.example.test:{server.port}"
    server.close()


def test_tabs(site: Site, form: HostileProvider, opened: Window) -> None:
    """All logins are begun before the first one ends; each tab ends at its own page."""
    tabs = [opened.tab() for _ in range(LOGINS)]
    for number, tab in enumerate(tabs):
        tab.open(f"{site.origin}/tab/{number}")
    for tab in tabs:
        tab.wait(tab.has_form, "a form")
    for number in (3, 0, 7, 1, 2, 6, 5, 4):
        tabs[number].submit()
        tabs[number].wait_for(f"{site.origin}/tab/{number}")
        assert f'"user": "{USER}"' in tabs[number].text
    assert form.count("token") == LOGINS


def test_session_cookies(site: Site, hostile: HostileProvider, opened: Window) -> None:
    tab = opened.tab()
    tab.sign_in(f"{site.origin}/")
    host = urlsplit(site.origin).hostname
    found = [one for one in opened.cookies() if one["domain"].lstrip(".") == host]
    assert found
    for one in found:
        assert one["name"].startswith("__Host-") and one["domain"] == host and one["path"] == "/"
        assert one["secure"] and one["httpOnly"] and one["sameSite"] == "Lax", one
    assert tab.run("document.cookie") == ""


def test_reload_and_back_button(site: Site, form: HostileProvider, opened: Window) -> None:
    tab = opened.tab()
    tab.sign_in(f"{site.origin}/first")
    tab.reload()
    assert '"path": "/first"' in tab.text
    tab.open(f"{site.origin}/second")
    tab.back()
    assert tab.url == f"{site.origin}/first" and f'"user": "{USER}"' in tab.text
    assert form.count("token") == 1


def test_back_to_the_form_after_a_login(site: Site, form: HostileProvider, opened: Window) -> None:
    """The form of a login that has ended signs in again, or shows an error, and the session stays."""
    tab = opened.tab()
    tab.sign_in(f"{site.origin}/page")
    tab.back()
    if tab.has_form():
        tab.submit()
        tab.wait_for(site.origin)
    tab.open(f"{site.origin}/page")
    assert f'"user": "{USER}"' in tab.text


def test_fetch_of_a_page(site: Site, hostile: HostileProvider, opened: Window) -> None:
    tab = opened.tab()
    tab.sign_in(f"{site.origin}{OPEN}")
    without = tab.fetch("/api")
    assert without["status"] == 401 and without["url"] == f"{site.origin}/api"
    assert hostile.count("authorize") == 0
    tab.sign_in(f"{site.origin}/")
    assert tab.fetch("/api")["status"] == 200


def test_logout_in_one_tab_ends_the_session_of_all(
    site: Site, form: HostileProvider, opened: Window
) -> None:
    first, second = opened.tab(), opened.tab()
    first.sign_in(f"{site.origin}/first")
    second.sign_in(f"{site.origin}/second")
    assert form.count("token") == 1
    first.open(f"{site.origin}{LOGOUT}")
    first.wait(first.has_form, "a form")
    assert second.fetch("/api")["status"] == 401
    second.reload()
    second.wait(second.has_form, "a form")


def test_sibling_cannot_plant_a_session(
    site: Site, form: HostileProvider, opened: Window, sibling: str
) -> None:
    """Cookie tossing: browsers refuse `__Host-` names with a Domain; the session of the victim stays."""
    tab, other = opened.tab(), opened.tab()
    tab.sign_in(f"{site.origin}/")
    for one in opened.cookies("__Host-"):
        other.open(f"{sibling}/?cookie={one['name']}=planted;Domain=example.test;Path=/;Secure")
    assert all(one["value"] != "planted" for one in opened.cookies())
    tab.reload()
    assert f'"user": "{USER}"' in tab.text


def test_image_of_another_site_does_not_log_out(
    site: Site, form: HostileProvider, opened: Window
) -> None:
    tab, other = opened.tab(), opened.tab()
    tab.sign_in(f"{site.origin}/")
    other.open(f"{form.issuer}/keys")
    load = "new Promise(done => { const i = new Image(); i.onload = i.onerror = () => done(1); i.src = %r })"
    other.run(load % f"{site.origin}{LOGOUT}")
    assert tab.fetch("/api")["status"] == 200


def test_link_of_another_site_keeps_the_session(
    site: Site, form: HostileProvider, opened: Window
) -> None:
    """SameSite=Lax: a navigation from another site has the session."""
    tab, other = opened.tab(), opened.tab()
    tab.sign_in(f"{site.origin}/")
    other.open(f"{form.issuer}/keys")
    other.run(f"setTimeout(() => location.assign('{site.origin}/linked')); 0")
    other.wait_for(f"{site.origin}/linked")
    assert f'"user": "{USER}"' in other.text
    assert form.count("token") == 1
