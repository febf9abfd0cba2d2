"""Answers of token endpoints, and what is sent to them."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import parse_qs

import pytest

from edgefast.auth.oidc.token_response import (
    RESPONSE_LIMIT,
    TokenError,
    TokenResponse,
    basic_credentials,
    code_form,
    encode_form,
    fit_tokens,
    parse_token_response,
)

GOOD = {"access_token": "a", "token_type": "bearer", "id_token": "i", "refresh_token": "r"}


def parse(status: int = 200, **more: Any) -> TokenResponse:
    members = {name: one for name, one in {**GOOD, **more}.items() if one is not ...}
    return parse_token_response(status, json.dumps(members).encode())


def test_tokens_and_their_life() -> None:
    assert parse(expires_in=300) == TokenResponse("i", "a", "r", 300)
    assert parse(expires_in="300").expires_in == 300
    for none in (..., None, 0, -5, "", "soon", "nan"):
        assert parse(expires_in=none).expires_in == 0
    assert parse(expires_in=1e300).expires_in == 400 * 86_400
    assert parse(id_token=..., refresh_token=None) == TokenResponse("", "a", "", 0)
    assert "a" not in repr(parse()).removeprefix("TokenResponse").replace("redacted", "")


@pytest.mark.parametrize(
    "more",
    [
        {"token_type": "mac"},
        {"token_type": ...},
        {"access_token": ...},
        {"access_token": "a\r\nset-cookie: b=c"},
        {"id_token": "a b"},
        {"refresh_token": "\u00e4"},
        {"id_token": {"a": "b"}},
    ],
)
def test_what_is_not_used(more: dict[str, Any]) -> None:
    with pytest.raises(TokenError) as told:
        parse(**more)
    assert not told.value.rejected


@pytest.mark.parametrize(
    ("status", "body", "rejected"),
    [
        (400, b'{"error": "invalid_grant"}', True),
        (401, b'{"error": "invalid_grant"}', True),
        (400, b'{"error": "interaction_required"}', True),
        (403, b'{"error": "access_denied"}', True),
        (429, b'{"error": "slow_down"}', False),
        (404, b"<html>", False),
        (401, b'{"error": "invalid_client"}', False),
        (500, b"<html>", False),
        (204, b"", False),
    ],
)
def test_only_a_grant_that_is_not_valid_is_the_clients_fault(
    status: int, body: bytes, rejected: bool
) -> None:
    with pytest.raises(TokenError) as told:
        parse_token_response(status, body)
    assert told.value.rejected == rejected


def test_what_is_sent() -> None:
    form = encode_form(code_form("a&b=c", "https://a/b?c=d", "v"))
    assert parse_qs(form.decode()) == {
        "grant_type": ["authorization_code"],
        "code": ["a&b=c"],
        "redirect_uri": ["https://a/b?c=d"],
        "code_verifier": ["v"],
    }
    assert basic_credentials("a:b", b"c%d e") == "Basic YSUzQWI6YyUyNWQlMjBl"


def test_a_large_access_token_stops_no_login() -> None:
    large = TokenResponse("id", "a" * 100_000, "refresh", 1)
    assert RESPONSE_LIMIT > 2 * len(large.access_token)
    for access in (True, False):
        assert fit_tokens(large, access=access) == TokenResponse("id", "", "refresh", 1)
    small = TokenResponse("id", "access", "refresh", 1)
    assert fit_tokens(small, access=True) == small
    assert fit_tokens(small, access=False).access_token == ""
    for one in (TokenResponse("i" * 25_000), TokenResponse("i", "a", "r" * 20_000)):
        with pytest.raises(TokenError, match="cookies cannot keep it"):
            fit_tokens(one, access=True)
