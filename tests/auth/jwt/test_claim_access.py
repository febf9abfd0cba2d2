"""Claims: where they are, what policies ask of them, and which header lines come of them."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from auth.jwt.issuer import judge, jwk, provider, token
from edgefast.auth.jwt.claim_access import find_claim, has_access, header_lines, scopes_of
from edgefast.auth.jwt.token_check import LINES_LIMIT
from edgefast.ir.credentials import AccessClaim, AccessToken

pytestmark = pytest.mark.pure

CLAIMS: dict[str, Any] = {
    "sub": "jane",
    "level": 3,
    "roles": ["admin", "dev", 7],
    "realm": {"roles": ["ops"], "deep": {"er": "x"}},
    "https://example.com/roles": ["guest"],
    "a.b": "literal",
    "a": {"c": 1},
    "realm.deep": "hidden",
}


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("sub", "jane"),
        ("realm.roles", ["ops"]),
        ("realm.deep.er", "x"),
        ("realm.deep", {"er": "x"}),
        ("realm.none", None),
        ("sub.x", None),
        ("roles.0", None),
        ("https://example.com/roles", ["guest"]),
        ("a.b", "literal"),
        ("a.c", 1),
        ("", None),
        (".", None),
    ],
)
def test_paths(path: str, value: Any) -> None:
    assert find_claim(CLAIMS, path) == value


@pytest.mark.parametrize(
    ("claims", "scopes"),
    [
        ({"scope": "openid  profile "}, {"openid", "profile"}),
        ({"scope": ["a", "b c", 1]}, {"a", "b c"}),
        ({"scp": ["a", "b"]}, {"a", "b"}),
        ({"scp": "a b"}, {"a", "b"}),
        ({"scope": "a", "scp": ["b"]}, {"a"}),
        ({"scope": 7}, set()),
        ({"scope": None, "scp": ["b"]}, set()),
        ({}, set()),
    ],
)
def test_scopes(claims: dict[str, Any], scopes: set[str]) -> None:
    assert scopes_of(claims) == scopes


@pytest.mark.parametrize(
    ("claim", "holds"),
    [
        (AccessClaim("sub", ("jane", "john")), True),
        (AccessClaim("sub", ("john",)), False),
        (AccessClaim("sub", ("jane",), array=True), False),
        (AccessClaim("roles", ("dev",), array=True), True),
        (AccessClaim("roles", ("7",), array=True), False),
        (AccessClaim("roles", ("dev",)), False),
        (AccessClaim("realm.roles", ("ops", "x"), array=True), True),
        (AccessClaim("level", ("3",)), False),
        (AccessClaim("nothing", ("None", "")), False),
    ],
)
def test_claims_that_are_asked_for(claim: AccessClaim, holds: bool) -> None:
    assert has_access(AccessToken("p", claims=(claim,)), "p", CLAIMS) is holds
    assert not has_access(AccessToken("q", claims=(claim,)), "p", CLAIMS)


def test_all_that_is_asked_for() -> None:
    said = {**CLAIMS, "scope": "read write"}
    sub, role = AccessClaim("sub", ("jane",)), AccessClaim("roles", ("x",), array=True)
    assert has_access(AccessToken("p"), "p", {})
    assert has_access(AccessToken("p", ("read", "write"), (sub,)), "p", said)
    assert not has_access(AccessToken("p", ("read", "admin"), (sub,)), "p", said)
    assert not has_access(AccessToken("p", ("read",), (sub, role)), "p", said)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("jane", "jane"),
        ("", ""),
        ("J\u00e4ne", "J\u00e4ne"),
        ("tab\there", "tab\there"),
        (True, "true"),
        (False, "false"),
        (3, "3"),
        (-(10**30), "-1" + "0" * 30),
        (3.0, "3"),
        (1.5, "1.5"),
        (1e22, "1e+22"),
        (None, None),
        ("x\r\nx-admin: yes", None),
        ("x\n", None),
        ("x\0", None),
        ("\x7f", None),
    ],
)
def test_header_lines(value: Any, text: str | None) -> None:
    lines = header_lines((("x-claim", "c"),), {"c": value})
    assert lines == (b"" if text is None else f"x-claim: {text}\r\n".encode())


def test_lists_and_objects_are_base64_of_json() -> None:
    (line,) = header_lines((("x-r", "realm"),), CLAIMS).splitlines()
    assert (
        json.loads(base64.b64decode(line.removeprefix(b"x-r: "), validate=True)) == CLAIMS["realm"]
    )


def test_lines_of_a_good_token() -> None:
    wanted = (("x-sub", "sub"), ("x-none", "nothing"), ("x-role", "realm.role"))
    outcome = judge(token(realm={"role": "ops"}), provider(jwk("ES256"), claim_headers=wanted))
    assert outcome.lines == b"x-sub: jane\r\nx-role: ops\r\n"


def test_one_claim_cannot_make_any_number_of_lines() -> None:
    wanted = tuple((f"x-{n}", "big") for n in range(8))
    spec = provider(jwk("ES256"), claim_headers=wanted)
    assert judge(token(big="x" * 1000), spec).good
    assert judge(token(big="x" * (LINES_LIMIT // 8)), spec).word == "malformed"
