"""Which discovery documents are believed."""

from __future__ import annotations

import json
from typing import Any

import pytest

from edgefast.auth.oidc.provider_metadata import (
    MetadataError,
    ProviderMetadata,
    check_endpoint,
    parse_metadata,
    read_provider,
    write_provider,
)
from tests.auth.oidc.ring import ISSUER

DOCUMENT = {
    "issuer": ISSUER,
    "authorization_endpoint": f"{ISSUER}/authorize",
    "token_endpoint": f"{ISSUER}/token",
    "jwks_uri": f"{ISSUER}/keys",
    "scopes_supported": ["openid"],
}


def parse(*, plain: bool = False, **more: Any) -> ProviderMetadata:
    members = {name: one for name, one in {**DOCUMENT, **more}.items() if one is not ...}
    return parse_metadata(json.dumps(members).encode(), ISSUER, plain=plain)


def test_a_document_and_what_workers_get_of_it() -> None:
    found = parse(end_session_endpoint=f"{ISSUER}/end", token_endpoint_auth_methods_supported=None)
    assert found == ProviderMetadata(
        ISSUER, f"{ISSUER}/authorize", f"{ISSUER}/token", f"{ISSUER}/keys", f"{ISSUER}/end"
    )
    assert read_provider(write_provider(found, b"keys")) == (found, b"keys")
    assert read_provider(b"keys of jwt") == (None, b"keys of jwt")
    assert parse(authorization_response_iss_parameter_supported=True).names_issuer


@pytest.mark.parametrize(
    ("methods", "in_body"),
    [
        (["client_secret_post"], True),
        (["client_secret_basic", "client_secret_post"], False),
        (["private_key_jwt"], False),
        ([], False),
    ],
)
def test_how_the_client_proves_its_identity(methods: list[str], in_body: bool) -> None:
    assert parse(token_endpoint_auth_methods_supported=methods).secret_in_body == in_body


@pytest.mark.parametrize(
    "more",
    [
        {"issuer": f"{ISSUER}/"},
        {"authorization_endpoint": f"{ISSUER}/authorize?redirect_uri=https://evil.example.com"},
        {"authorization_endpoint": f"{ISSUER}/authorize?a=b&response%5Ftype=token"},
        {"token_endpoint": f"{ISSUER}/token?grant_type=password"},
        {"end_session_endpoint": f"{ISSUER}/end?post_logout_redirect_uri="},
        {"issuer": "https://other.example.com"},
        {"issuer": ...},
        {"jwks_uri": ...},
        {"jwks_uri": 1},
        {"token_endpoint": "http://idp.example.com/token"},
        {"token_endpoint": ""},
        {"authorization_endpoint": "javascript:alert(1)"},
        {"authorization_endpoint": "https://user@idp.example.com/"},
        {"authorization_endpoint": "https://idp.example.com/#a"},
        {"authorization_endpoint": "https://idp.example.com/a\r\nset-cookie: a=b"},
        {"end_session_endpoint": "http://idp.example.com/end"},
    ],
)
def test_what_is_not_believed(more: dict[str, Any]) -> None:
    with pytest.raises(MetadataError):
        parse(**more)


@pytest.mark.parametrize("text", [b"", b"[]", b"{", b"\xff", b"null"])
def test_what_is_no_document(text: bytes) -> None:
    with pytest.raises(MetadataError):
        parse_metadata(text, ISSUER, plain=False)


def test_plain_http_is_for_backends_alone() -> None:
    assert check_endpoint("http://idp/token", plain=True) == ""
    assert check_endpoint("http://idp/token", plain=False) == "expected https"
    assert check_endpoint("https://idp:0/token", plain=False)
    assert check_endpoint("https://" + "a" * 2048, plain=False)


def test_browsers_use_http_only_if_the_issuer_does() -> None:
    inside = {"token_endpoint": "http://idp/token", "jwks_uri": "http://idp/keys"}
    assert parse(plain=True, **inside).token_endpoint == "http://idp/token"
    for name in "authorization_endpoint", "end_session_endpoint":
        with pytest.raises(MetadataError, match=f"{name} .* expected https"):
            parse(plain=True, **{name: "http://idp.example.com/a"})
