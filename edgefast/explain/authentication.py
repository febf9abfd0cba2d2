"""Authentication: the result of API keys and basic auth of policy units for a request.

In: a unit, the request's head as it came. Out: `AuthenticationResult`: the client, or why the
answer is 401 (tokens.py has tokens). None where the result is unknown, because the dump hides the
values that the unit compares with. The twin of core/policy/authenticator.pyx and
credential_extractor.pyx.
Must never: show a credential, of the request or of the unit.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Iterator, Sequence
from hashlib import sha256
from urllib.parse import unquote_to_bytes

import msgspec

from edgefast import ir
from edgefast._csrc import lib
from edgefast.auth.htpasswd import verify
from edgefast.auth.oidc.cookie_names import session_name
from edgefast.explain.head import Head, Line
from edgefast.explain.logins import describe_login, headers_of_login, verify_login
from edgefast.explain.tokens import (
    AuthenticationResult,
    describe_places,
    describe_tokens,
    verify_token,
)

__all__ = [
    "describe_proof",
    "find_skipped",
    "is_proof",
    "leave_for_next",
    "pass_on",
    "authenticate",
    "sets_of",
]

_BASIC = ir.CredentialExtractors(headers=(("authorization", "Basic "),))
_UNKNOWN = "<the authenticated client>"
_PAIR = 1024  # bytes of a name and a password (core/consts.pxi)


def authenticate(unit: ir.PolicyUnit, head: Head, now: float) -> AuthenticationResult | None:
    """Judge a request as a worker does; `now` are Unix seconds, 0: of a time when its token is valid."""
    if unit.api_key is not None:
        return _prove_key(unit.api_key, head)
    if unit.jwt is not None:
        return verify_token(unit.jwt, lambda places: list(_find(places, head)), now)
    if unit.oidc is not None:
        places = ir.CredentialExtractors(cookies=(session_name(unit.oidc),))
        return verify_login(unit.oidc, head, has_session=bool(list(_find(places, head))))
    assert unit.basic is not None
    return _prove_user(unit.basic, head)


def is_proof(unit: ir.PolicyUnit) -> bool:
    """Tell whether a unit wants to know who a client is."""
    parts = (unit.api_key, unit.basic, unit.oidc, unit.jwt)
    return any(one is not None for one in parts) and not unit.status


def sets_of(unit: ir.PolicyUnit) -> tuple[str, ...]:
    """Return the headers that nobody but the unit says to the backend."""
    if unit.api_key is not None:
        places = unit.api_key.places.headers if unit.api_key.sanitize else ()
        names = [name for name, _ in places]
        return (*names, *([unit.api_key.forward_header] if unit.api_key.forward_header else ()))
    if unit.jwt is not None:
        return tuple(name for one in unit.jwt.providers for name, _ in one.claim_headers)
    if unit.oidc is not None:
        return headers_of_login(unit.oidc)
    header = unit.basic.forward_header if unit.basic is not None else ""
    return (header,) if header else ()


def pass_on(unit: ir.PolicyUnit, came: Head, head: Head, now: float) -> Head:
    """Return `head`, which has no line of `sets_of` any more, as it is behind the unit; `came` is the request as it came."""
    found = authenticate(unit, came, now)
    if unit.jwt is not None:
        if found is None:
            return head  # what its claims are is not known
        for line in found.lines.splitlines():
            name, _, value = line.partition(b": ")
            head = _add(head, name.decode(), value)
        return head
    if unit.oidc is not None:
        return head  # what its claims are is not known
    user = found.user if found is not None else _UNKNOWN
    keys = unit.api_key
    if keys is not None and keys.sanitize:
        head = _strip(keys.places, head)
    forward = keys.forward_header if keys is not None else ""
    if unit.basic is not None:
        forward = unit.basic.forward_header
    return _add(head, forward, user.encode()) if forward and user else head


def find_skipped(units: Sequence[ir.PolicyUnit], came: Head) -> dict[str, str]:
    """Return the units that another unit of their policy replaces for this request, with the reason: a token or a session is enough."""
    found: dict[str, str] = {}
    by_name = {one.name: one for one in units}
    for one in units:
        if one.oidc is None or not one.oidc.pass_through:
            continue
        tokens = by_name.get(one.name.rpartition("#")[0] + "#jwt")
        if tokens is None or tokens.jwt is None:
            continue
        if any(list(_find(each.places, came)) for each in tokens.jwt.providers):
            found[one.name] = "the request has a token, and jwt decides (passThroughAuthHeader)"
        else:
            found[tokens.name] = (
                "the request has no token, and oidc decides (passThroughAuthHeader)"
            )
    return found


def leave_for_next(unit: ir.PolicyUnit, came: Head) -> Head:
    """Return the request as the next proof sees it: parameters that were taken out are gone, lines are hidden from backends only."""
    keys = unit.api_key
    return _strip_query(keys.places, came) if keys is not None and keys.sanitize else came


def _strip_query(places: ir.CredentialExtractors, head: Head) -> Head:
    if not places.params or head.query is None:
        return head
    names = {one.encode() for one in places.params}
    kept = [
        one
        for one in head.query.split(b"&")
        if unquote_to_bytes(one.partition(b"=")[0]) not in names
    ]
    return msgspec.structs.replace(head, query=b"&".join(kept) or None)


def _strip(places: ir.CredentialExtractors, head: Head) -> Head:
    head = _strip_query(places, head)
    cookies = [
        piece.strip(b" \t")
        for line in head.lines
        if line.name.lower() == b"cookie"
        for piece in line.value.split(b";")
    ]
    gone = {one.encode() for one in places.cookies}
    left = [one for one in cookies if one and one.partition(b"=")[0].strip(b" \t") not in gone]
    if not gone or len(left) == len([one for one in cookies if one]):
        return head
    lines = tuple(one for one in head.lines if one.name.lower() != b"cookie")
    head = msgspec.structs.replace(head, lines=lines)
    return _add(head, "cookie", b"; ".join(left)) if left else head


def _add(head: Head, name: str, value: bytes) -> Head:
    raw = b"%b: %b\r\n" % (name.encode(), value)
    line = Line(name=name.encode(), value=value, id=lib.EF_H_OTHER, flags=0, raw=raw)
    return msgspec.structs.replace(head, lines=(*head.lines, line))


def _prove_key(keys: ir.ApiKeyAuth, head: Head) -> AuthenticationResult | None:
    found = list(_find(keys.places, head))
    if wrong := _describe_count(found, "key", describe_places(keys.places)):
        return AuthenticationResult(why=wrong)
    if not all(digest for digest, _ in keys.clients):
        return None
    client = dict(keys.clients).get(sha256(found[0]).digest())
    if client is None:
        return AuthenticationResult(why="its key belongs to no client")
    return AuthenticationResult(True, client, f"the key belongs to {client}")


def _prove_user(users: ir.BasicAuth, head: Head) -> AuthenticationResult | None:
    found = list(_find(_BASIC, head))
    if wrong := _describe_count(found, "name and password", "header authorization (Basic)"):
        return AuthenticationResult(why=wrong)
    try:
        pair = b64decode(found[0], validate=True) if len(found[0]) <= 4 * _PAIR // 3 + 4 else b""
    except ValueError:
        pair = b""
    name, colon, password = pair.partition(b":")
    if not colon:
        return AuthenticationResult(why="header authorization does not contain a name and password")
    if not all(kept for _, kept in users.users):
        return None
    user = name.decode("utf-8", "replace")
    kept = dict(users.users).get(user)
    if kept is None or not verify(kept.encode(), password):
        return AuthenticationResult(why="name and password belong to no user")
    return AuthenticationResult(True, user, f"name and password belong to {user}")


def _describe_count(found: list[bytes], what: str, where: str) -> str:
    if not found:
        return f"it has no {what}: {where}"
    return f"it has two different ones: {where}" if len(set(found)) > 1 else ""


def _find(places: ir.CredentialExtractors, head: Head) -> Iterator[bytes]:
    for name, prefix in places.headers:
        for line in head.lines:
            if line.name.lower() != name.encode():
                continue
            value = line.value
            if value[: len(prefix)].lower() == prefix.lower().encode():
                yield value[len(prefix) :].strip(b" ")
    for name in places.cookies:
        for line in head.lines:
            if line.name.lower() == b"cookie":
                yield from _in_cookies(line.value, name.encode())
    for name in places.params:
        for part in (head.query or b"").split(b"&"):
            key, _, value = part.partition(b"=")
            if unquote_to_bytes(key) == name.encode():
                yield unquote_to_bytes(value)


def _in_cookies(line: bytes, name: bytes) -> Iterator[bytes]:
    for piece in line.split(b";"):
        key, equals, value = piece.strip(b" \t").partition(b"=")
        if equals and key.rstrip(b" \t") == name:
            yield value.lstrip(b" \t").strip(b'"')


# --- in words -------------------------------------------------------------------------------------------------------


def describe_proof(unit: ir.PolicyUnit) -> str:
    """Return what a unit asks for."""
    if unit.api_key is not None:
        return _describe_keys(unit.api_key)
    if unit.jwt is not None:
        return describe_tokens(unit.jwt)
    if unit.oidc is not None:
        return describe_login(unit.oidc)
    assert unit.basic is not None
    return _describe_users(unit.basic)


def _describe_keys(keys: ir.ApiKeyAuth) -> str:
    count = len({client for _, client in keys.clients})
    message = f"requires a key of {count} client{'' if count == 1 else 's'} in {describe_places(keys.places)}"
    message += f", sent to the backend in {keys.forward_header}" if keys.forward_header else ""
    return f"{message}, removed from the request" if keys.sanitize else message


def _describe_users(users: ir.BasicAuth) -> str:
    count = len(users.users)
    message = f"requires name and password of {count} user{'' if count == 1 else 's'}"
    return message + (
        f", sent to the backend in {users.forward_header}" if users.forward_header else ""
    )
