"""The decisions of explain about a login, and the client secret that it never shows."""

from __future__ import annotations

import pytest

from edgefast import ir
from edgefast.explain.authentication import (
    authenticate,
    describe_proof,
    find_skipped,
    is_proof,
    sets_of,
)
from edgefast.explain.head import Head, scan_head
from edgefast.table.redacted import hide_policy

ISSUER = "https://idp.example.com"
LOGIN = ir.Oidc(
    remote=ir.RemoteKeys(f"{ISSUER}/.well-known/openid-configuration", issuer=ISSUER),
    client_id="shop",
    client_secret=b"5ecret",
    claim_headers=(("x-sub", "sub"),),
    forward_access_token=True,
)
UNIT = ir.PolicyUnit(name="security/default/login#oidc", oidc=LOGIN)
BROWSER = "accept: text/html\r\n"
SESSION = "cookie: a=b; __Host-edge-session-"


def head(target: str = "/", lines: str = "") -> Head:
    text = f"GET {target} HTTP/1.1\r\nhost: shop.example.com\r\n{lines}\r\n".encode()
    found = scan_head(text, ir.HttpSettings(), tls=True)
    assert isinstance(found, Head)
    return found


@pytest.mark.parametrize(
    ("target", "lines", "status", "why"),
    [
        ("/", BROWSER, 302, f"the browser is redirected to the provider {ISSUER}"),
        ("/", "", 401, "not a navigation"),
        ("/logout", "", 302, "ends the session"),
        ("/oauth2/callback", "", 401, "no session"),
    ],
)
def test_what_a_request_without_a_session_gets(
    target: str, lines: str, status: int, why: str
) -> None:
    found = authenticate(UNIT, head(target, lines), 0.0)
    assert found is not None and not found.passes and found.status == status and why in found.why


def test_what_only_a_proxy_knows() -> None:
    name = describe_proof(UNIT).partition("(cookie ")[2].partition(")")[0]
    assert name.startswith("__Host-edge-session-")
    assert authenticate(UNIT, head("/", f"cookie: a=b; {name}=1AAAA\r\n"), 0.0) is None
    assert authenticate(UNIT, head("/oauth2/callback?state=a&code=b"), 0.0) is None
    assert is_proof(UNIT) and sets_of(UNIT) == ("x-sub", "authorization")


def test_a_token_or_a_session_is_enough_with_pass_through() -> None:
    jwt = ir.PolicyUnit(
        name="security/default/login#jwt", jwt=ir.Jwt(providers=(ir.JwtProvider(name="a"),))
    )
    login = ir.PolicyUnit(
        name=UNIT.name,
        oidc=ir.Oidc(remote=LOGIN.remote, client_id="shop", client_secret=b"a", pass_through=True),
    )
    units = (login, jwt)
    assert list(find_skipped(units, head())) == [jwt.name]
    assert list(find_skipped(units, head("/", "authorization: Bearer a.b.c\r\n"))) == [login.name]
    assert find_skipped((UNIT, jwt), head()) == {}


def test_the_client_secret_is_never_shown() -> None:
    assert "5ecret" not in f"{hide_policy(UNIT)!r}{UNIT!r}{describe_proof(UNIT)}"
    assert "5ecret" not in str(hide_policy(UNIT).oidc.client_secret)  # type: ignore[union-attr]
