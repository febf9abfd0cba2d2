"""Access: lists of addresses, basic authentication and auth-url -> the spec of a SecurityPolicy.

In: the annotations of an Ingress, the settings of the ConfigMap, a Lookup. Out: an `Access`: the spec without targets and the
Secret that it needs, or why the locations answer 503.
Source: ingress-nginx nginx.tmpl (deny, allow, satisfy, auth_basic), auth/main.go.
Must never: leave out a rule that it cannot express.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from edgefast.api.core.secret import Secret
from edgefast.api.edge.credentials import BasicAuth as PolicyBasicAuth
from edgefast.api.edge.securitypolicy import (
    Action,
    Authorization,
    AuthorizationPrincipal,
    AuthorizationRule,
)
from edgefast.api.model.meta import ObjectMeta
from edgefast.api.model.origin import MARK
from edgefast.api.model.reference import SecretObjectReference
from edgefast.diagnostics.reasons.word import Word
from edgefast.translate.ingress.auth_url import (
    AuthCheck,
    AuthUrl,
    FindAuthTarget,
    RequestHost,
    asks_request_host,
    translate_auth_url,
)
from edgefast.translate.ingress.configmap import Globals, Note
from edgefast.translate.ingress.lookup import Lookup
from edgefast.translate.ingress.servers import Source
from edgefast.translate.policy.credentials import HTPASSWD, check_hash

#: Ranges of one rule of a SecurityPolicy, and rules of one policy.
_RANGES = 256
_RULES = 64


class Access(msgspec.Struct, frozen=True, kw_only=True):
    """Who may enter the locations of an Ingress."""

    authorization: Authorization | None = None
    basic: PolicyBasicAuth | None = None
    secret: Secret | None = None  # made for `basic`
    check: AuthCheck | None = None  # auth-url
    closed: str = ""  # the annotation for which the locations answer 503
    of_host: bool = False  # the check is of one host of the Ingress
    notes: tuple[Note, ...] = ()


def find_access(
    source: Source, settings: Globals, lookup: Lookup, find_target: FindAuthTarget
) -> Access:
    """Return the access rules of an Ingress, without a check that differs between its hosts (`add_host_check`)."""
    annotations = source.annotations
    allow, deny = annotations.allow, annotations.deny
    if not allow and not deny:
        deny = settings.block  # of all hosts, where a location has no list of its own
    authorization = None
    if allow or deny:
        rules = (*_rules("Deny", deny), *_rules("Allow", allow))
        # With satisfy: any a denylist alone admits no client: no rule allows one.
        alone = annotations.satisfy_any and annotations.basic is None and annotations.auth is None
        default: Action = "Deny" if allow or alone else "Allow"
        authorization = Authorization(default_action=default, rules=rules)
        if len(rules) > _RULES:
            name = "allowlist-source-range" if allow else "denylist-source-range"
            message = f"more than {_RULES * _RANGES} ranges; its locations answer 503"
            return Access(closed=name, notes=(Note(name=name, message=message, error=True),))
    access = Access() if annotations.basic is None else _find_users(source, lookup)
    if annotations.auth is not None and not asks_request_host(annotations.auth):
        check = translate_auth_url(annotations.auth, source.namespace, lookup, find_target)
        access = _add_check(access, annotations.auth, check)
    return msgspec.structs.replace(access, authorization=authorization)


def add_host_check(
    access: Access,
    source: Source,
    lookup: Lookup,
    find_target: FindAuthTarget,
    host: RequestHost,
) -> Access:
    """Return the access rules of an Ingress for one of its hosts, with the notes of this host alone."""
    found = source.annotations.auth
    if found is None or not asks_request_host(found):
        return access
    check = translate_auth_url(found, source.namespace, lookup, find_target, host)
    access = msgspec.structs.replace(access, of_host=True, notes=())
    return _add_check(access, found, check)


def _add_check(access: Access, found: AuthUrl, check: AuthCheck) -> Access:
    if check.wrong:
        message = f"{check.wrong}; its locations answer 503"
        note = _note_check(found, message, reason=check.reason, error=True)
        return msgspec.structs.replace(
            access, closed=access.closed or found.name, notes=(*access.notes, note)
        )
    if check.verifies:
        message = "edgefast verifies the certificate of the service, which ingress-nginx does not"
        note = _note_check(found, message, reason="NotSupported")
        access = msgspec.structs.replace(access, notes=(*access.notes, note))
    return msgspec.structs.replace(access, check=check)


def _note_check(found: AuthUrl, message: str, *, reason: Word, error: bool = False) -> Note:
    if found.name == "auth-url":
        return Note(name=found.name, message=message, error=error, reason=reason)
    message = f"{found.name} of the ConfigMap: {message}"
    return Note(name="metadata.annotations", message=message, error=error, reason=reason)


def _rules(action: str, ranges: tuple[str, ...]) -> Iterator[AuthorizationRule]:
    for at in range(0, len(ranges), _RANGES):
        principal = AuthorizationPrincipal(client_cidrs=ranges[at : at + _RANGES])
        yield AuthorizationRule(
            action="Allow" if action == "Allow" else "Deny", principal=principal
        )


def _find_users(source: Source, lookup: Lookup) -> Access:
    basic = source.annotations.basic
    assert basic is not None
    namespace, _, name = basic.secret.rpartition("/")
    if namespace not in ("", source.namespace) or "/" in namespace:
        return _close("auth-secret", "a Secret of another namespace is not allowed")
    secret = lookup.secret((source.namespace, name))
    named = f"Secret {source.namespace}/{name}"
    if secret is None:
        return _close("auth-secret", f"{named} not found")
    lines = _map_lines(secret) if basic.is_map else _file_lines(secret)
    if lines is None:
        return _close("auth-secret", f"{named} has no key auth in UTF-8")
    notes: list[Note] = []
    kept: list[str] = []
    for number, line in enumerate(lines, 1):
        user, colon, rest = line.partition(":")
        if not colon:  # it can be anything that the Secret contains
            message = f"{named}: entry {number} has no colon after its user; it is ignored"
            notes.append(Note(name="auth-secret", message=message, error=True))
            continue
        # A third part is a comment (ngx_http_auth_basic_module).
        found = rest.split(":", 1)[0]
        wrong = check_hash(found)
        if wrong:
            message = f"{named}: user {user!r:.40} {wrong}; the user gets 401"
            notes.append(Note(name="auth-secret", message=message, error=True))
        elif all(one.partition(":")[0] != user for one in kept):
            kept.append(f"{user}:{found}")
    if not kept:
        access = _close("auth-secret", f"{named} has no user with a hash that edgefast verifies")
        return msgspec.structs.replace(access, notes=(*notes, *access.notes))
    made = Secret(
        metadata=ObjectMeta(
            name=f"{name}{MARK}-{'map' if basic.is_map else 'file'}", namespace=source.namespace
        ),
        data={HTPASSWD: "".join(f"{one}\n" for one in kept).encode()},
    )
    users = SecretObjectReference(name=made.metadata.name)
    return Access(basic=PolicyBasicAuth(users=users), secret=made, notes=tuple(notes))


def _close(name: str, message: str) -> Access:
    note = Note(name=name, message=f"{message}; its locations answer 503", error=True)
    return Access(closed=name, notes=(note,))


def _file_lines(secret: Secret) -> list[str] | None:
    data = secret.value("auth")
    return None if data is None else _decode(data)


def _map_lines(secret: Secret) -> list[str] | None:
    lines = []
    for user in sorted({*secret.data, *secret.string_data}):
        found = _decode(secret.value(user) or b"")
        if found is None:
            return None
        lines.append(f"{user}:{found[0] if found else ''}")
    return lines


def _decode(data: bytes) -> list[str] | None:
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return None
    lines = (one.strip() for one in text.splitlines())
    return [one for one in lines if one and not one.startswith("#")]
