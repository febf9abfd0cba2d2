r"""Redirects with variables of nginx as templates; what could lead a client to another host is refused."""

from __future__ import annotations

import pytest

from edgefast.translate.ingress.redirect_variables import translate_location


@pytest.mark.parametrize(
    ("url", "template"),
    [
        ("https://else.test$request_uri", "https://else.test{target}"),
        ("https://$host$request_uri", "https://{host}{target}"),
        (
            "$scheme://$http_host/new?from=$escaped_request_uri",
            "{scheme}://{authority}/new?from={escapedTarget}",
        ),
        ("https://else.test:8443/a/$1", r"https://else.test:8443/a/\1"),
        ("https://else.test/?${args}", "https://else.test/?{query}"),
        ("https://else.test/a$2", "https://else.test/a"),
        (f"https://else.test/a${{{'1' * 5000}}}", "https://else.test/a"),
    ],
)
def test_served(url: str, template: str) -> None:
    assert translate_location(url, 1) == (template, "")


@pytest.mark.parametrize(
    "url",
    [
        "https://$1.else.test/",
        "https://else.test$1",
        "https://else.test$args",
        "https://$http_x/",
        "https://$host.else.test/",
        "https://user@$host/",
        "https://else.test/$remote_user",
        "https://else.test/$uri",
        "//else.test$request_uri",
        "/path$request_uri",
        "https://else.test/$",
        "https://else.test/{target}$host",
        "javascript:$request_uri",
        "https://$host\\@else.test/",
    ],
)
def test_refused(url: str) -> None:
    template, wrong = translate_location(url, 1)
    assert not template and wrong


@pytest.mark.parametrize("url", ["https://else.test/$1", "https://else.test/a${2}?b"])
def test_groups_are_refused_without_a_rewrite(url: str) -> None:
    """temporal-redirect and permanent-redirect have no expression whose groups they could name."""
    template, wrong = translate_location(url)
    assert not template and wrong
