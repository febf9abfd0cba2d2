"""Logins and sessions of one client, from its redirect to its logout, without a network."""

from __future__ import annotations

import hashlib
import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import msgspec
import pytest

from edgefast.auth.oidc.login_client import Admission, LoginClient, Reply, TokenCall
from edgefast.auth.oidc.login_state import STATES_LIMIT, parse_callback
from edgefast.auth.oidc.provider_metadata import ProviderMetadata
from edgefast.auth.oidc.token_response import TokenResponse
from edgefast.ir import DeniedRedirect
from tests.auth.oidc.ring import ISSUER, Ring, client, request

NOW = 1_900_000_000.0
PROVIDER = ProviderMetadata(
    ISSUER, f"{ISSUER}/authorize?a=b", f"{ISSUER}/token", f"{ISSUER}/keys", f"{ISSUER}/end"
)


def id_token(**more: Any) -> tuple[str, dict[str, Any]]:
    """Return a token as it is once its signature was verified, and its claims."""
    claims = {"iss": ISSUER, "aud": "shop", "sub": "jane", "exp": NOW + 300, **more}
    claims = {name: one for name, one in claims.items() if one is not None}
    parts = [json.dumps(one).encode() for one in ({"alg": "ES256"}, claims)]
    text = b".".join(urlsafe_b64encode(one).rstrip(b"=") for one in (*parts, b"signature"))
    return text.decode(), claims


def take(cookies: dict[str, str], found: Reply | Admission) -> dict[str, str]:
    """Return the cookies of a browser after an answer."""
    kept = dict(cookies)
    for line in found.cookies:
        pair, _, attributes = line.partition("; ")
        name, _, value = pair.partition("=")
        assert "; Secure; HttpOnly; SameSite=" in f"; {attributes}"
        if "Max-Age=0" in attributes:
            kept.pop(name, None)
        else:
            kept[name] = value
    return kept


def begin(one: LoginClient, path: str = "/", **more: Any) -> tuple[dict[str, str], dict[str, str]]:
    """Return the cookies and the parameters of the redirect."""
    found = one.decide(request(path, **more), PROVIDER, NOW)
    assert isinstance(found, Reply) and found.status == 302
    parts = urlsplit(found.location)
    return take({}, found), {name: values[0] for name, values in parse_qs(parts.query).items()}


def call_back(one: LoginClient, cookies: dict[str, str], now: float = NOW, **said: str) -> Any:
    path = f"{one.spec.callback_path}?{urlencode(said)}"
    return one.decide(request(path, cookies), PROVIDER, now)


def log_in(one: LoginClient, life: int = 300, **claims: Any) -> dict[str, str]:
    cookies, said = begin(one)
    call = call_back(one, cookies, code="c", state=said["state"])
    assert isinstance(call, TokenCall)
    text, known = id_token(nonce=said["nonce"], **claims)
    response = TokenResponse(text, "access", "refresh", life)
    done = one.finish(request("/oauth2/callback", cookies), call, response, known, NOW)
    assert isinstance(done, Reply) and done.word == "login", done
    return take(cookies, done)


def test_what_the_provider_is_asked() -> None:
    one = client(scopes=("openid", "email"), resources=("https://a", "https://b"))
    cookies, said = begin(one, "/orders?page=2")
    assert said["a"] == "b" and said["response_type"] == "code" and said["client_id"] == "shop"
    assert said["scope"] == "openid email" and said["resource"] == "https://a"
    assert said["redirect_uri"] == "https://shop.example.com/oauth2/callback"
    assert all(name.startswith("__Host-edge-login-") for name in cookies)
    call = call_back(one, cookies, code="c", state=said["state"])
    assert (call.code, call.redirect_uri) == ("c", said["redirect_uri"])
    challenge = hashlib.sha256(call.verifier.encode()).digest()
    assert urlsafe_b64decode(said["code_challenge"] + "=") == challenge, "RFC 7636 4.2"
    assert 43 <= len(call.verifier) <= 128 and len(said["nonce"]) >= 22


def test_no_two_logins_have_anything_in_common() -> None:
    one = client()
    first, second = begin(one)[1], begin(one)[1]
    for name in ("state", "nonce", "code_challenge"):
        assert first[name] != second[name]


def test_a_session_from_login_to_logout() -> None:
    one = client(claim_headers=(("x-sub", "sub"),))
    cookies = log_in(one)
    found = one.decide(request("/", cookies), None, NOW)
    assert isinstance(found, Admission) and found.lines == b"x-sub: jane\r\n"
    assert found.claims["sub"] == "jane" and found.until == NOW + 240 and found.cookies == ()
    gone = one.decide(request("/logout", cookies), PROVIDER, NOW)
    assert isinstance(gone, Reply) and gone.location.startswith(f"{ISSUER}/end?id_token_hint=")
    assert take(cookies, gone) == {}
    assert one.decide(request("/logout", {}), None, NOW).location == "https://shop.example.com/"  # type: ignore[union-attr]


def test_a_login_ends_with_its_time_and_with_the_oldest_of_nine() -> None:
    one = client(login_lifetime=60_000)
    cookies, said = begin(one)
    late = call_back(one, cookies, NOW + 61, code="c", state=said["state"])
    assert isinstance(late, Reply) and (late.status, late.word) == (400, "state")
    jar: dict[str, str] = {}
    for at in range(12):
        found = one.decide(request("/", jar), PROVIDER, NOW + at / 1000)
        assert isinstance(found, Reply)
        jar = take(jar, found)
        assert len(jar) == min(at + 1, 8)
    assert [int(name.rsplit("-", 1)[1][:12], 16) for name in jar] == [
        int(NOW) * 1000 + at for at in range(4, 12)
    ], "the oldest of the last 12 ms"


@pytest.mark.parametrize(
    ("more", "word"),
    [
        ({"nonce": None}, "nonce"),
        ({"nonce": "other"}, "nonce"),
        ({"azp": "other"}, "azp"),
        ({"azp": 1}, "azp"),
        ({"aud": ["shop", "other"]}, "azp"),
        ({"sub": None}, "subject"),
        ({"sub": 7}, "subject"),
    ],
)
def test_an_id_token_of_another_login_is_refused(more: dict[str, Any], word: str) -> None:
    one = client()
    cookies, said = begin(one)
    call = call_back(one, cookies, code="c", state=said["state"])
    text, claims = id_token(**{"nonce": said["nonce"], **more})
    done = one.finish(request("/", cookies), call, TokenResponse(text, "a"), claims, NOW)
    assert isinstance(done, Reply) and (done.status, done.word) == (401, word)
    assert take(cookies, done) == {}, "its state is used up"
    without = one.finish(request("/", cookies), call, TokenResponse("", "a"), None, NOW)
    assert isinstance(without, Reply) and without.word == "id_token"


def test_a_callback_at_another_place_or_of_another_client_is_refused() -> None:
    one, other = client(), client(client_secret=b"another")
    cookies, said = begin(one)
    assert call_back(other, cookies, code="c", state=said["state"]).word == "state"
    path = f"/oauth2/callback?code=c&state={said['state']}"
    elsewhere = request(path, cookies, origin="https://evil.example.com")
    found = one.decide(elsewhere, PROVIDER, NOW)
    assert isinstance(found, Reply) and found.word == "state"
    plain = request(path, cookies, origin="http://shop.example.com")  # TLS ends before the proxy
    assert isinstance(one.decide(plain, PROVIDER, NOW), TokenCall)


@pytest.mark.parametrize(
    "query",
    [
        "",
        "code=a",
        "state=a",
        "state=a&code=b&code=c",
        "state=a&state=b&code=c",
        "state=a&code=b&error=c",
        "state=a&code=b&iss=c&iss=d",
        "state=%ff&code=b",
        "code=b&state=" + "a" * 8192,
        "&".join(["state=a", "code=b", *(f"x{at}=1" for at in range(40))]),
    ],
)
def test_what_is_no_callback(query: str) -> None:
    assert parse_callback(query) is None


def test_a_provider_that_names_itself_in_callbacks_always_has_to() -> None:
    one = client()
    provider = ProviderMetadata(
        *(getattr(PROVIDER, name) for name in PROVIDER.__struct_fields__[:6]), True
    )
    cookies, said = begin(one)
    path = f"/oauth2/callback?code=c&state={said['state']}"
    found = one.decide(request(path, cookies), provider, NOW)
    assert isinstance(found, Reply) and (found.status, found.word) == (401, "issuer")
    found = one.decide(request(f"{path}&iss={ISSUER}", cookies), provider, NOW)
    assert isinstance(found, TokenCall)


@pytest.mark.parametrize(
    "target", ["//evil.example.com/", "/\\evil.example.com", "///a", "/" + "a" * 3000]
)
def test_a_login_never_returns_to_another_host(target: str) -> None:
    one = client()
    cookies, said = begin(one, "/", target=target)
    call = call_back(one, cookies, code="c", state=said["state"])
    text, claims = id_token(nonce=said["nonce"])
    done = one.finish(
        request("/oauth2/callback", cookies), call, TokenResponse(text, "a"), claims, NOW
    )
    assert isinstance(done, Reply) and done.location.startswith("/")
    assert done.location == "/" or done.location[1] not in "/\\"


def test_a_login_returns_to_the_host_of_its_domain_where_it_began() -> None:
    one = client(cookie_domain="example.com", callback_origin="https://login.example.com")
    cookies, said = begin(one, "/a")
    assert said["redirect_uri"] == "https://login.example.com/oauth2/callback"
    path = f"/oauth2/callback?code=c&state={said['state']}"
    there = request(path, cookies, origin="https://login.example.com")
    call = one.decide(there, PROVIDER, NOW)
    assert isinstance(call, TokenCall)
    text, claims = id_token(nonce=said["nonce"])
    done = one.finish(there, call, TokenResponse(text, "a"), claims, NOW)
    assert isinstance(done, Reply) and done.location == "https://shop.example.com/a"
    assert all("Domain=example.com" in line for line in done.cookies)


def test_refresh_expiry_and_the_end_of_a_session() -> None:
    one = client(session_lifetime=600_000)
    cookies = log_in(one, 100)
    assert isinstance(one.decide(request("/", cookies), None, NOW + 79), Admission)
    call = one.decide(request("/", cookies), None, NOW + 81)
    assert isinstance(call, TokenCall) and call.refresh_token == "refresh"
    early = one.on_failure(request("/", cookies), call, None, NOW + 81, rejected=False)
    assert isinstance(early, Admission) and early.until == NOW + 91, "valid tokens are enough"
    late = one.on_failure(request("/", cookies), call, None, NOW + 101, rejected=False)
    assert isinstance(late, Reply) and late.status == 503
    used = one.on_failure(request("/", cookies), call, PROVIDER, NOW + 81, rejected=True)
    assert isinstance(used, Admission) and not used.cookies, "by another replica, perhaps"
    for word, rejected in ("provider", True), ("signature", False):
        lost = one.on_failure(
            request("/", cookies), call, PROVIDER, NOW + 101, rejected=rejected, word=word
        )
        assert isinstance(lost, Reply) and lost.status == 302
        assert one.chunks(take(cookies, lost)) == ""
    text, claims = id_token()
    done = one.finish(
        request("/", cookies), call, TokenResponse(text, "a", "next", 100), claims, NOW + 81
    )
    assert isinstance(done, Admission)
    fresh = take(cookies, done)
    assert isinstance(one.decide(request("/", fresh), None, NOW + 150), Admission)
    assert isinstance(one.decide(request("/", fresh), None, NOW + 700), Reply), "it has ended"
    other, claims = id_token(sub="mallory")
    swapped = one.finish(request("/", cookies), call, TokenResponse(other, "a"), claims, NOW + 81)
    assert isinstance(swapped, Reply) and swapped.word == "subject"


def test_data_planes_with_the_same_secrets_share_logins_and_sessions() -> None:
    rings = [Ring(), Ring()]
    planes = [client(one) for one in rings]
    cookies, said = begin(planes[0])
    call = call_back(planes[1], cookies, code="c", state=said["state"])
    assert isinstance(call, TokenCall)
    text, known = id_token(nonce=said["nonce"])
    response = TokenResponse(text, "access", "refresh", 300)
    done = planes[1].finish(request("/oauth2/callback", cookies), call, response, known, NOW)
    assert isinstance(done, Reply) and done.word == "login"
    cookies = take(cookies, done)
    rings[0].rotate()  # the other plane has the new secret later
    found = planes[0].decide(request("/", cookies), None, NOW + 1)
    assert isinstance(found, Admission) and found.cookies
    assert isinstance(planes[1].decide(request("/", take({}, found)), None, NOW + 1), Reply)
    rings[1].rotate()
    for kept in (cookies, take({}, found)):
        assert isinstance(planes[1].decide(request("/", kept), None, NOW + 1), Admission)


def test_a_session_moves_to_the_new_key() -> None:
    ring = Ring()
    one = client(ring)
    cookies = log_in(one)
    ring.rotate()
    found = one.decide(request("/", cookies), None, NOW + 1)
    assert isinstance(found, Admission) and found.until == 0.0
    cookies = take(cookies, found)
    ring.rotate()
    found = one.decide(request("/", cookies), None, NOW + 2)
    assert isinstance(found, Admission) and found.cookies
    ring.rotate()
    ring.rotate()
    assert isinstance(one.decide(request("/", cookies), None, NOW + 3), Reply)


def test_sizes_of_sessions() -> None:
    one = client(forward_access_token=True)
    cookies = log_in(one, groups=["x" * 3000])
    names = [name for name in cookies if name.startswith(one.session_name)]
    assert len(names) == 2 and all(len(name) + len(cookies[name]) <= 4096 for name in names)
    found = one.decide(request("/", cookies), None, NOW)
    assert isinstance(found, Admission) and b"authorization: Bearer access\r\n" in found.lines
    for name in names:
        assert one.chunks({key: value for key, value in cookies.items() if key != name}) == ""
    state, said = begin(one)
    call = call_back(one, state, code="c", state=said["state"])
    text, claims = id_token(nonce=said["nonce"])
    large = TokenResponse(text, "a" * 12_000, "refresh", 300)
    done = one.finish(request("/", {**state, **cookies}), call, large, claims, NOW)
    assert isinstance(done, Reply) and done.word == "login"
    left = take({**state, **cookies}, done)
    found = one.decide(request("/", left), None, NOW)
    assert isinstance(found, Admission) and found.lines == b"", "without the access token"
    text, claims = id_token(nonce=said["nonce"], groups=["x" * 9000])
    done = one.finish(request("/", state), call, TokenResponse(text, "a"), claims, NOW)
    assert isinstance(done, Reply) and (done.status, done.word) == (500, "session_size")


def test_who_gets_401_in_place_of_a_redirect() -> None:
    denied = (DeniedRedirect("x-a", "exact", "b"), DeniedRedirect("x-b", "suffix", "z"))
    one = client(denied_redirects=denied)
    navigates = {"sec-fetch-mode": "navigate"}
    for headers, status in (
        ({}, 302),
        ({"x-a": "b"}, 401),
        ({"x-a": "c"}, 302),
        ({"x-b": "xyz"}, 401),
    ):
        found = one.decide(request(headers={**navigates, **headers}), PROVIDER, NOW)
        assert isinstance(found, Reply) and found.status == status
    assert one.decide(request(grpc=True), PROVIDER, NOW).status == 401  # type: ignore[union-attr]
    assert one.decide(request(), None, NOW).status == 503  # type: ignore[union-attr]


def test_nothing_is_shown_of_what_is_secret() -> None:
    one = client()
    cookies, said = begin(one)
    call = call_back(one, cookies, code="the-code", state=said["state"])
    assert "the-code" not in repr(call) and said["state"] not in repr(call)
    assert "secret" not in repr(one.spec)


def test_cookies_of_logins_leave_room_in_a_request() -> None:
    one = client()
    jar: dict[str, str] = {}
    for at in range(12):
        jar = take(jar, one.decide(request(f"/{'a' * 480}", jar), PROVIDER, NOW + at))  # type: ignore[arg-type]
        assert sum(len(name) + len(value) + 3 for name, value in jar.items()) <= STATES_LIMIT
    assert 4 <= len(jar) <= 8
    long = {f"{one.state_name}-{at:020x}": "x" * 3000 for at in range(12)}  # of parallel requests
    found = one.decide(request("/", long), PROVIDER, NOW)
    assert isinstance(found, Reply) and len(take(long, found)) == 3
    _, said = begin(one, "/", target="/" + "a" * 600)
    assert said["state"]


def test_a_session_is_of_one_way_to_log_in() -> None:
    ring, one = Ring(), client()
    cookies = log_in(one)
    remote = one.spec.remote
    others = (
        {"remote": msgspec.structs.replace(remote, cluster="service/evil/idp/80")},
        {"token_endpoint": "https://evil.example.com/token"},
        {"forward_access_token": True},
        {"client_id": "other"},
        {"authorization_endpoint": "https://idp.example.com/auth?acr_values=mfa"},
        {"scopes": ("openid", "groups")},
        {"resources": ("https://api.example.com",)},
        {"refresh": False},
        {"token_lifetime": 60_000},
        {"session_lifetime": 3_600_000},
    )
    for more in others:
        other = client(ring, **more)
        assert other.session_name != one.session_name and other.scope != one.scope
        renamed = {other.session_name: "1" + one.chunks(cookies)}
        assert isinstance(other.decide(request("/", renamed), PROVIDER, NOW), Reply)
    secret = client(client_secret=b"another")
    assert secret.session_name == one.session_name, "a name tells nothing of the secret"
    assert secret.scope != one.scope


def test_a_sibling_cannot_give_a_browser_its_login() -> None:
    one = client(cookie_domain="example.com")
    found = one.decide(request("/"), PROVIDER, NOW)
    assert isinstance(found, Reply)
    (line,) = found.cookies
    assert line.startswith("__Host-edge-login-") and "Domain" not in line
    cookies = log_in(one)
    assert [name[:22] for name in cookies] == ["__Secure-edge-session-"]


def test_a_login_that_was_not_sent_goes_on() -> None:
    one = client()
    cookies, said = begin(one)
    call = call_back(one, cookies, code="c", state=said["state"])
    busy = one.on_failure(
        request("/", cookies), call, PROVIDER, NOW, rejected=False, word="busy", sent=False
    )
    assert isinstance(busy, Reply) and (busy.status, busy.cookies) == (503, ())
    sent = one.on_failure(request("/", cookies), call, PROVIDER, NOW, rejected=False, word="busy")
    assert isinstance(sent, Reply) and take(cookies, sent) == {}


def test_a_callback_waits_for_what_the_provider_says_of_callbacks() -> None:
    one = client()
    cookies, said = begin(one)
    path = f"/oauth2/callback?code=c&state={said['state']}"
    found = one.decide(request(path, cookies), None, NOW)
    assert isinstance(found, Reply) and (found.status, found.word) == (503, "provider")
    assert take(cookies, found) == cookies


def test_a_session_has_an_end_however_often_it_is_refreshed() -> None:
    one = client(session_lifetime=600_000)
    cookies, now, refreshes = log_in(one, 300), NOW, 0
    while True:
        now += 250
        call = one.decide(request("/", cookies), PROVIDER, now)
        if not isinstance(call, TokenCall):
            break
        text, claims = id_token(exp=now + 300)
        response = TokenResponse(text, "a", "next", 300)
        done = one.finish(request("/", cookies), call, response, claims, now)
        assert isinstance(done, Admission)
        cookies = take(cookies, done)
        refreshes += 1
        known = one.decide(request("/", cookies), None, now)
        assert isinstance(known, Admission) and known.until <= NOW + 2400
    assert isinstance(call, Reply) and call.word == "missing" and 2350 <= now - NOW <= 2650
    assert refreshes == 9


def test_claims_that_cannot_be_used() -> None:
    one = client(claim_headers=(("x-a", "a"),))
    cookies, said = begin(one)
    call = call_back(one, cookies, code="c", state=said["state"])
    text, claims = id_token(nonce=said["nonce"], exp=10**400)
    done = one.finish(request("/", cookies), call, TokenResponse(text, "a"), claims, NOW)
    assert isinstance(done, Reply) and done.word == "login"
    several = client(claim_headers=tuple((f"x-{at}", "a") for at in range(32)))
    found = several.decide(request("/", log_in(several, a="x" * 2000)), None, NOW)
    assert isinstance(found, Reply) and (found.status, found.word) == (401, "claims_size")


def test_a_refresh_that_is_too_large_for_cookies_ends_the_session() -> None:
    one = client()
    cookies = log_in(one, 100)
    call = one.decide(request("/", cookies), None, NOW + 90)
    assert isinstance(call, TokenCall)
    text, claims = id_token(groups=["x" * 12_000])
    done = one.finish(request("/", cookies), call, TokenResponse(text, "a"), claims, NOW + 90)
    assert isinstance(done, Reply) and (done.status, done.word) == (401, "session_size")
    assert take(cookies, done) == {}


def test_policies_of_one_client_share_a_session_and_others_do_not() -> None:
    ring = Ring()
    route, gateway = client(ring), client(ring, logout_path="/leave", callback_path="/cb")
    found = gateway.decide(request("/", log_in(route)), None, NOW)
    assert isinstance(found, Admission) and found.claims["sub"] == "jane"
    other = client(ring, client_id="other")
    cookies = {**log_in(route), **log_in(other)}
    assert len(cookies) == 2, "two clients on one host"
    for one in (route, other):
        assert isinstance(one.decide(request("/", cookies), None, NOW), Admission)
    left = take(cookies, other.decide(request("/logout", cookies), PROVIDER, NOW))  # type: ignore[arg-type]
    assert isinstance(route.decide(request("/", left), None, NOW), Admission)
    started, said = begin(other)
    path = f"/oauth2/callback?code=c&state={said['state']}"
    assert route.decide(request(path, started), PROVIDER, NOW).word == "state"  # type: ignore[union-attr]
