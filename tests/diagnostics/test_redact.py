"""What counts as a credential, by name and by looks, and that what stands for it tells a length and nothing else."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgefast.diagnostics.redact import hide, is_credential, is_token, show, show_query

pytestmark = pytest.mark.pure

JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U"


@given(st.text(alphabet="eyJa._ -", max_size=40))
def test_a_jwt_is_found_wherever_it_is(text: str) -> None:
    assert is_token(text) == (re.search(r"eyJ[\w-]{8,}\.[\w-]{4,}", text) is not None)


@pytest.mark.timeout(60)
@pytest.mark.parametrize("text", ["eyJ", "-eyJ", "eyJ_", "eyJ."])
def test_long_text_costs_its_length(text: str) -> None:
    """What begins like a token again and again is read once."""
    assert not is_token(text * (1_000_000 // len(text)) + " ")


@pytest.mark.parametrize(
    "name",
    [
        *("authorization", "Authorization", "proxy-authorization", "x-forwarded-authorization"),
        *(
            "cookie",
            "Set-Cookie",
            "cookie:sid",
            "x-api-key",
            "api-key",
            "apikey",
            "api_key",
            "X-ApiKey",
        ),
        *("x-auth-token", "x-auth", "x-amz-security-token", "x-goog-api-key", "private-token"),
        *("x-vault-token", "x-functions-key", "ocp-apim-subscription-key", "x-csrf-token"),
        *("access_token", "client_secret", "password", "x-password", "x-session-id", "X-Signature"),
        *("x-accesstoken", "x-client-secret", "x-webhook-secret", "x-jwt-assertion", "api-key-2"),
    ],
)
def test_names_of_credentials(name: str) -> None:
    assert is_credential(name)
    assert "hunter" not in show(name, "hunter")


@pytest.mark.parametrize(
    "name",
    [
        *("host", "accept", "x-user", "x-env", "x-request-id", "cache-control", "etag", "origin"),
        *("x-tokens-left", "x-author", "www-authenticate", "idempotency-key", "keyboard", "x-key"),
        *("x-forwarded-for", "traceparent", "x-cookie-consent", "x-api-version", "x-auth-user"),
    ],
)
def test_other_names(name: str) -> None:
    assert not is_credential(name)
    assert show(name, "one") == "one"


@pytest.mark.parametrize(
    "value",
    [
        *("Bearer abc", "bearer  abc", "Basic dXNlcjpwYXNz", "Token x", "Negotiate YII"),
        *(JWT, f"x={JWT}"),
        *("sk_live_4eC39HqLyjW", "ghp_abcdefgh", "glpat-abc", "AKIAIOSFODNN7EXAMPLE"),
        "wJalrXUtnFEMIK7MDENGbPxRfiCYEXAMPLEKEY",
        "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        "5f4dcc3b5aa765d61d8327deb882cf99",
        "key=Zm9vYmFyYmF6cXV4MTIzNDU2Nzg5MA==",
        "tok-a8f5f167f44f4964e6c998dee827110c",
    ],
)
def test_looks_of_credentials(value: str) -> None:
    assert is_token(value)
    shown = show("x-anything", value)
    assert shown == hide(value) == f"<{len(value)} characters, not shown>"


@pytest.mark.parametrize(
    "value",
    [
        *("", "one", "true", "production", "eu-west-1", "blue-green-canary-release-candidate"),
        *("550e8400-e29b-41d4-a716-446655440000", "max-age=31536000; includeSubDomains; preload"),
        *(
            "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",
            "12345678901234567890",
        ),
        *("/api/v1/customers/orders/list2024", "https://www.example.com/some/long/path/of/it"),
        *("Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36", "2026-11-22T13:00:00.000000Z"),
        *(
            "default-src 'self'; img-src *",
            "internal_service_name_of_the_shop_v2",
            "v1.2.3-rc.4+build5",
        ),
        "aaaaaaaaaaaaaaaaaaaa11",
    ],
)
def test_other_looks(value: str) -> None:
    assert not is_token(value)


def test_a_url_keeps_all_but_its_credentials() -> None:
    url = "http://a.test/x?one=1&api_key=s%20ecret&two&token="
    shown = "http://a.test/x?one=1&api_key=<7 characters, not shown>&two&token=<0 characters, not shown>"
    assert show_query(url) == shown
    assert show_query("/plain") == "/plain"
