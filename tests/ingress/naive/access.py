"""Access: limits, denylist, allowlist, basic auth, auth-url, and how `satisfy` joins them."""

from __future__ import annotations

import base64
import hashlib
import ipaddress
import re
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from ingress.message import AuthCall, Headers, Request, answer_auth, first
from ingress.naive.client import Client
from ingress.naive.forwarding import passed_headers
from ingress.naive.hosts import Location
from ingress.naive.matching import Served
from ingress.naive.objects import Objects
from ingress.naive.redirects import is_listed
from ingress.naive.variables import component, expand

#: Statuses of an answer that gets the cookie of the authentication service.
WITH_COOKIE = frozenset((200, 201, 204, 206, 301, 302, 303, 304, 307, 308))


@dataclass(frozen=True)
class External:
    """An authentication service: of the location, or the global one."""

    url: str
    method: str = ""
    response_headers: tuple[str, ...] = ()
    signin: str = ""
    signin_parameter: str = "rd"
    request_redirect: str = ""
    always_set_cookie: bool = False


@dataclass
class Decision:
    """The outcome: status 0 admits."""

    status: int = 0
    call: AuthCall | None = None
    answer: Headers = ()  # of the authentication service
    challenges: list[str] = field(default_factory=list)  # WWW-Authenticate
    kept: int = 0  # what an earlier check of `satisfy: any` refused with before a 500


def external_of(location: Location, objects: Objects) -> External | None:
    """auth-url of the location, else global-auth-url unless enable-global-auth is "false"."""
    owner = location.owner
    if owner is not None and owner.text("auth-url"):
        listed = owner.raw("auth-response-headers").split(",")
        return External(
            owner.text("auth-url"),
            owner.text("auth-method"),
            tuple(one.strip() for one in listed if one.strip()),
            owner.text("auth-signin"),
            owner.text("auth-signin-redirect-param", "rd"),
            owner.text("auth-request-redirect"),
            owner.flag("auth-always-set-cookie"),
        )
    url = objects.setting("global-auth-url")
    if not url or owner is None or not owner.flag("enable-global-auth", True):
        return None
    listed = objects.setting("global-auth-response-headers").split(",")
    return External(
        url,
        objects.setting("global-auth-method"),
        tuple(one.strip() for one in listed if one.strip()),
        objects.setting("global-auth-signin"),
        objects.setting("global-auth-signin-redirect-param") or "rd",
        objects.setting("global-auth-request-redirect"),
        objects.setting("global-auth-always-set-cookie") == "true",
    )


def needs_login(served: Served, objects: Objects) -> bool:
    """`no-auth-locations` defaults to `/.well-known/acme-challenge`: no basic auth, no auth-url, no sign-in there."""
    return not is_listed(
        served, objects.setting("no-auth-locations", "/.well-known/acme-challenge")
    )


def decide(request: Request, client: Client, served: Served, objects: Objects) -> Decision:
    """denylist, allowlist, then basic auth, then auth-url. With both, a bad password is 401 without a call of auth-url."""
    decision = Decision()
    owner = served.location.owner
    any_suffices = owner is not None and owner.text("satisfy") == "any"
    checks = [_check_address]
    if owner is not None and needs_login(served, objects):
        checks += [_check_password, _check_external]
    refused = 0
    for check in checks:
        status = check(decision, request, client, served, objects)
        if status is None:
            continue
        if status == 500:
            decision.status, decision.kept = 500, refused
            return decision
        if any_suffices and status == 0:
            decision.status, decision.challenges = 0, []
            return decision
        if not any_suffices and status:
            decision.status = status
            return decision
        if any_suffices and status:
            refused = _worse(refused, status)
    decision.status = refused
    return decision


def _worse(before: int, status: int) -> int:
    """`satisfy: any` ORs the checks in that order: 401 beats 403, and 500 of auth-url ends it."""
    return before if before == 401 else status


def _check_address(
    decision: Decision, request: Request, client: Client, served: Served, objects: Objects
) -> int | None:
    """Denylist first, then allowlist. A denylist alone that does not match decides nothing: with `satisfy: any` it admits no
    request. block-cidrs apply where a location has neither."""
    owner = served.location.owner
    denied, allowed = list[str](), list[str]()
    if owner is not None:
        denied = owner.networks("denylist-source-range")
        denied = denied or _global(objects, "denylist-source-range")
        allowed = owner.networks("allowlist-source-range")
        allowed = allowed or _global(objects, "whitelist-source-range")
    if (
        not denied and not allowed
    ):  # nginx inherits access rules only where a location has no own ones
        denied = _global(objects, "block-cidrs")
    if contains(denied, client.address):
        return 403
    if not allowed:
        return None
    return 0 if contains(allowed, client.address) else 403


def is_blocked(client: Client, objects: Objects) -> bool:
    """block-cidrs of the ConfigMap has the client."""
    return contains(_global(objects, "block-cidrs"), client.address)


def _global(objects: Objects, name: str) -> list[str]:
    return [one.strip() for one in objects.setting(name).split(",") if one.strip()]


def contains(networks: list[str], address: str) -> bool:
    given = ipaddress.ip_address(address)
    return any(given in ipaddress.ip_network(one, strict=False) for one in networks)


def _check_password(
    decision: Decision, request: Request, client: Client, served: Served, objects: Objects
) -> int | None:
    owner = served.location.owner
    assert owner is not None
    realm = owner.text("auth-realm")
    if not owner.text("auth-type") or realm == "off":
        return None
    if _password_is_known(request, _password_lines(served, objects)):
        return 0
    decision.challenges.append(f'Basic realm="{realm}"')
    return 401


def _password_lines(served: Served, objects: Objects) -> list[str]:
    """auth-file: the key `auth` is an htpasswd file. auth-map: each key is a user, each value a hash."""
    owner = served.location.owner
    assert owner is not None
    space = owner.ingress["metadata"].get("namespace", "default")
    secret = f"{space}/{owner.raw('auth-secret').rpartition('/')[2]}"
    if owner.text("auth-secret-type") == "auth-map":
        found = objects.find("Secret", secret) or {}
        users = [*(found.get("data") or {}), *(found.get("stringData") or {})]
        return [f"{user}:{(objects.secret_value(secret, user) or b'').decode()}" for user in users]
    return (objects.secret_value(secret, "auth") or b"").decode().splitlines()


def _password_is_known(request: Request, lines: list[str]) -> bool:
    found = re.fullmatch(r"(?i:basic) +(\S*)", request.value("authorization"))
    if not found:
        return False
    try:
        user, colon, password = base64.b64decode(found[1], validate=True).decode().partition(":")
    except ValueError:
        return False
    hashed = "{SHA}" + base64.b64encode(hashlib.sha1(password.encode()).digest()).decode()
    listed = next((line for line in lines if line.startswith(user + ":")), "")
    return bool(colon) and bool(user) and listed.split(":")[1:2] == [hashed]


def _check_external(
    decision: Decision, request: Request, client: Client, served: Served, objects: Objects
) -> int | None:
    """2xx passes; 401 and 403 pass on; other codes, 3xx too, are 500."""
    external = external_of(served.location, objects)
    if external is None:
        return None
    decision.call = auth_call(external, request, client)
    status, decision.answer = answer_auth(decision.call.headers)
    if 200 <= status < 300:
        return 0
    if status == 401:
        decision.challenges.append(first(decision.answer, "www-authenticate"))
    return status if status in (401, 403) else 500


def auth_call(external: External, request: Request, client: Client) -> AuthCall:
    """GET (or auth-method) without body, all request headers plus X-Original-URL, X-Original-Method, X-Sent-From, X-Real-IP,
    X-Forwarded-For, X-Auth-Request-Redirect. Host of the call has no port."""
    headers = {
        "host": expand(urlsplit(external.url).hostname or "", request),
        "x-original-url": f"{request.scheme}://{request.host}{request.target}",
        "x-original-method": request.method,
        "x-sent-from": "nginx-ingress-controller",
        "x-real-ip": client.address,
        "x-forwarded-for": client.address,
        "x-auth-request-redirect": external.request_redirect or request.target,
        "x-forwarded-proto": "",
        "x-request-id": request.value("x-request-id") or "<random>",
    }
    if external.method:
        headers |= {"x-original-uri": request.target, "x-scheme": client.scheme}
    url = expand(external.url, request)
    return AuthCall(url, external.method or "GET", passed_headers(request, headers))


def signin_location(external: External, request: Request, client: Client) -> str:
    """Any 401, basic auth's too, becomes 302 to auth-signin?rd=scheme://Host + the escaped URI."""
    parameter = external.signin_parameter
    query = urlsplit(external.signin).query
    if not query:
        mark = "?"
    elif re.search(rf"(?:^|&){re.escape(parameter)}=[^&]", query):
        return expand(external.signin, request)
    else:
        mark = "&"
    start = expand(external.signin, request)
    return f"{start}{mark}{parameter}={client.scheme}://{request.host}{component(request.target)}"
