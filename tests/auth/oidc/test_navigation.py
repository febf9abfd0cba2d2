"""Requests that a login page is for, and requests that may log a browser out."""

from __future__ import annotations

import pytest

from edgefast.auth.oidc.navigation import is_navigation, is_same_site

PAGE = {"accept": "text/html,application/xhtml+xml;q=0.9,*/*;q=0.8"}
NAVIGATES = {"sec-fetch-mode": "navigate", "accept": "*/*"}


@pytest.mark.parametrize(
    ("method", "headers", "expected"),
    [
        ("GET", PAGE, True),
        ("HEAD", PAGE, True),
        ("GET", NAVIGATES, True),
        ("GET", {"accept": "Text/HTML ;q=1"}, True),
        ("POST", PAGE, False),
        ("POST", NAVIGATES, False),
        ("GET", {}, False),
        ("GET", {"accept": "*/*"}, False),
        ("GET", {"accept": "application/json, text/htmlx"}, False),
        ("GET", {**PAGE, "sec-fetch-mode": "cors"}, False),
        ("GET", {**PAGE, "sec-fetch-mode": "no-cors"}, False),
        ("GET", {**PAGE, "x-requested-with": "xmlhttprequest"}, False),
        ("GET", {**PAGE, "upgrade": "websocket"}, False),
        ("GET", {**NAVIGATES, "sec-websocket-key": "a"}, False),
    ],
)
def test_navigations(method: str, headers: dict[str, str], expected: bool) -> None:
    assert is_navigation(method, headers) == expected


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({}, True),
        ({"sec-fetch-site": "none"}, True),
        ({"sec-fetch-site": "same-site"}, True),
        ({"sec-fetch-site": "cross-site", "origin": "https://a.test"}, False),
        ({"origin": "https://A.test"}, True),
        ({"origin": "https://b.test"}, False),
        ({"origin": "null"}, False),
        ({"referer": "https://a.test/page"}, True),
        ({"referer": "https://a.test.evil.test/page"}, False),
        ({"referer": "https://b.test/"}, False),
    ],
)
def test_logouts(headers: dict[str, str], expected: bool) -> None:
    assert is_same_site("https://a.test", headers) == expected
