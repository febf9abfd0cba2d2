"""Credentials: SecurityPolicy spec.apiKeyAuth and spec.basicAuth -> ir.ApiKeyAuth, ir.BasicAuth.

In: the fields, a Reader for the Secrets. Out: digests of keys, hashes of passwords as written; a
problem for every mistake. A Secret that is missing, is not permitted or has a mistake breaks the
whole unit: no request then passes it.
Source: SecurityPolicy, with the fields of Envoy Gateway; RFC 7617 2 (a name has no colon).
Must never: put a key, a password or a hash into a message.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterable
from hashlib import sha256

from edgefast import ir
from edgefast.api.core.secret import Secret
from edgefast.api.edge.credentials import APIKeyAuth, BasicAuth, ExtractFrom
from edgefast.api.model.reference import SecretObjectReference
from edgefast.diagnostics.reasons.word import Word
from edgefast.translate.deps.dependency_facts import Reader
from edgefast.translate.deps.referencegrant import refusal_text, wrong_kind_text
from edgefast.translate.match.header_name import check_header_name
from edgefast.translate.report.report import Report

__all__ = [
    "check_cookie",
    "check_forward_header",
    "check_hash",
    "check_param",
    "translate_api_keys",
    "translate_basic_auth",
]

HTPASSWD = ".htpasswd"
#: Of one policy.
MAX_CLIENTS = 4096
MAX_KEY = 4096
MAX_USERS = 4096
MAX_NAME = 256
#: Rounds of bcrypt as a power of two; one more is twice the time, and 12 is a third of a second.
MAX_COST = 12
_MAX_SECRETS = 16
MAX_PLACES = 16
_BEARER = "Bearer "
_APR1 = re.compile(r"\$apr1\$[./0-9A-Za-z]{1,8}\$[./0-9A-Za-z]{22}")
_BCRYPT = re.compile(r"\$2[aby]\$([0-9]{2})\$[./0-9A-Za-z]{53}")
_COOKIE = re.compile(r"[A-Za-z0-9!#$%&'*+\-.^_`|~]{1,256}")
_PARAM = re.compile(r"[!-~]{1,256}")
#: What says of a request where it is from, or what its body is, is not a client's name.
_TAKEN = frozenset(
    {"content-type", "date", "http2-settings", "server", "via"}
    | {"x-forwarded-for", "x-forwarded-proto", "x-request-id"}
)


def translate_api_keys(
    given: APIKeyAuth, namespace: str, reader: Reader, report: Report, path: str
) -> ir.ApiKeyAuth:
    """Translate the keys of a SecurityPolicy in `namespace`; of one with a mistake nothing is to be used."""
    places = _read_places(given.extract_from, report, f"{path}.extractFrom")
    forward = check_forward_header(
        given.forward_client_id_header, report, f"{path}.forwardClientIDHeader"
    )
    if forward and forward in {name for name, _ in places.headers}:
        message = f'"{forward}" is a header that contains keys'
        _refuse(report, f"{path}.forwardClientIDHeader", "Forbidden", message)
    refs = given.credential_refs
    if not 1 <= len(refs) <= _MAX_SECRETS:
        message = f"{len(refs)} Secrets (expected 1 to {_MAX_SECRETS})"
        _refuse(report, f"{path}.credentialRefs", "Invalid", message)
    clients: dict[bytes, str] = {}
    for at, ref in enumerate(refs):
        where = f"{path}.credentialRefs[{at}]"
        secret = read_secret(ref, namespace, reader, report, where)
        if secret is not None:
            _take_keys(secret, clients, report, where)
    if len(clients) > MAX_CLIENTS:
        message = f"{len(clients)} keys, at most {MAX_CLIENTS}"
        _refuse(report, f"{path}.credentialRefs", "TooMany", message)
    return ir.ApiKeyAuth(
        clients=tuple(sorted(clients.items())),
        places=places,
        forward_header=forward,
        sanitize=given.sanitize,
    )


def _take_keys(secret: Secret, clients: dict[bytes, str], report: Report, path: str) -> None:
    name = f"Secret {secret.metadata.namespace}/{secret.metadata.name}"
    ids = sorted({*secret.data, *secret.string_data})
    if not ids:
        _unresolve(report, path, f"{name} has no keys")
    for client in ids:
        key = secret.value(client) or b""
        if not 1 <= len(key) <= MAX_KEY or any(byte < 0x21 or byte > 0x7E for byte in key):
            message = f'{name} has an invalid key for "{client}" (allowed: 1 to {MAX_KEY} characters of visible ASCII'
            _unresolve(report, path, f"{message}, no line break)")
            continue
        digest = sha256(key).digest()
        if clients.setdefault(digest, client) != client:
            message = f'{name} has the same key for "{client}" and "{clients[digest]}"'
            _unresolve(report, path, message)


def _read_places(
    given: Iterable[ExtractFrom], report: Report, path: str
) -> ir.CredentialExtractors:
    headers: list[str] = []
    cookies: list[str] = []
    params: list[str] = []
    for at, one in enumerate(given):
        where = f"{path}[{at}]"
        if not (one.headers or one.cookies or one.params):
            _refuse(report, where, "Required", "headers, cookies or params")
        for place, name in enumerate(one.headers):
            if message := check_header_name(name):
                _refuse(report, f"{where}.headers[{place}]", "Invalid", message)
            headers.append(name.lower())
        for place, name in enumerate(one.cookies):
            check_cookie(name, report, f"{where}.cookies[{place}]")
            cookies.append(name)
        for place, name in enumerate(one.params):
            check_param(name, report, f"{where}.params[{place}]")
            params.append(name)
    for names, what in ((headers, "headers"), (cookies, "cookies"), (params, "params")):
        if len(set(names)) > MAX_PLACES:
            _refuse(report, path, "TooMany", f"{len(set(names))} {what}, at most {MAX_PLACES}")
    if not (headers or cookies or params):
        _refuse(report, path, "Required", "the place of the key in a request")
    return ir.CredentialExtractors(
        headers=tuple(
            (name, _BEARER if name == "authorization" else "") for name in dict.fromkeys(headers)
        ),
        cookies=tuple(dict.fromkeys(cookies)),
        params=tuple(dict.fromkeys(params)),
    )


def check_cookie(name: str, report: Report, path: str) -> None:
    """Refuse what is not the name of a cookie."""
    if not _COOKIE.fullmatch(name):
        _refuse(report, path, "Invalid", f'"{name}" is not the name of a cookie')


def check_param(name: str, report: Report, path: str) -> None:
    """Refuse what is not the name of a query parameter."""
    if not _PARAM.fullmatch(name):
        _refuse(report, path, "Invalid", f'"{name}" is not the name of a query parameter')


def translate_basic_auth(
    given: BasicAuth, namespace: str, reader: Reader, report: Report, path: str
) -> ir.BasicAuth:
    """The same of names and passwords."""
    forward = check_forward_header(
        given.forward_username_header, report, f"{path}.forwardUsernameHeader"
    )
    if forward == "authorization":
        message = '"authorization" is the header that contains passwords'
        _refuse(report, f"{path}.forwardUsernameHeader", "Forbidden", message)
    users: dict[str, str] = {}
    secret = read_secret(given.users, namespace, reader, report, f"{path}.users")
    if secret is not None:
        _take_users(secret, users, report, f"{path}.users")
    return ir.BasicAuth(users=tuple(sorted(users.items())), forward_header=forward)


def _take_users(secret: Secret, users: dict[str, str], report: Report, path: str) -> None:
    name = f"Secret {secret.metadata.namespace}/{secret.metadata.name}"
    data = secret.value(HTPASSWD)
    if data is None:
        _unresolve(report, path, f"{name} lacks {HTPASSWD}")
        return
    try:
        lines = data.decode().splitlines()
    except UnicodeDecodeError:
        _unresolve(report, path, f"{name} has a {HTPASSWD} that is not UTF-8")
        return
    for number, line in enumerate(lines, 1):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        user, _, kept = text.partition(":")
        message = _check_user(user) or check_hash(kept)
        if not message and user in users:
            message = "has a duplicate name"
        if message:
            _unresolve(report, path, f"{name} {HTPASSWD} line {number} {message}")
            continue
        users[user] = kept
    if not users and not report.unresolved:
        _unresolve(report, path, f"{name} has no users in {HTPASSWD}")
    if len(users) > MAX_USERS:
        _unresolve(report, path, f"{name} has {len(users)} users, at most {MAX_USERS}")


def _check_user(name: str) -> str:
    if not 1 <= len(name.encode()) <= MAX_NAME or not name.isprintable():
        return f"has no name of 1 to {MAX_NAME} bytes of printable characters before a colon"
    return ""


def check_hash(kept: str) -> str:
    """Return what is wrong with the hash of a password, "" when edgefast verifies it."""
    if kept.startswith("{SHA}"):
        try:
            if len(base64.b64decode(kept[5:], validate=True)) == 20:
                return ""
        except (binascii.Error, ValueError):
            pass
        return "has an invalid {SHA} hash"
    if _APR1.fullmatch(kept):
        return ""
    found = _BCRYPT.fullmatch(kept)
    if found is None:
        return "has an unsupported hash (allowed: hashes of htpasswd -B, -m and -s)"
    if not 4 <= int(found[1]) <= MAX_COST:
        return f"has a bcrypt hash of cost {int(found[1])}, expected 4 to {MAX_COST}"
    return ""


# --- Secrets and headers --------------------------------------------------------------------------------------------


def check_forward_header(name: str | None, report: Report, path: str) -> str:
    """Return the header that tells a backend who its client is, in lower case, "" for none."""
    if name is None:
        return ""
    low = name.lower()
    message = check_header_name(name)
    if not message and (low.replace("_", "-") in _TAKEN or low.startswith("x-edge-")):
        message = f'"{name}" belongs to the proxy'
    if message:
        _refuse(report, path, "Invalid", message)
    return low


def read_secret(
    ref: SecretObjectReference, namespace: str, reader: Reader, report: Report, path: str
) -> Secret | None:
    """Return the Secret that a SecurityPolicy in `namespace` refers to; None: that is a mistake, and told."""
    if ref.group or ref.kind != "Secret":
        message = wrong_kind_text(ref.group, ref.kind, "Secret")
        report.unresolve(path, "InvalidKind", message)
        return None
    target = (ref.namespace or namespace, ref.name)
    if not reader.permits("SecurityPolicy", namespace, "", "Secret", target):
        message = refusal_text("SecurityPolicy", namespace, "Secret", *target)
        report.unresolve(path, "RefNotPermitted", message)
        return None
    secret = reader.secret(*target)
    if secret is None:
        _unresolve(report, path, f"Secret {target[0]}/{target[1]} not found")
    return secret


def _unresolve(report: Report, path: str, message: str) -> None:
    report.unresolve(path, "InvalidCredentialRef", message)


def _refuse(report: Report, path: str, reason: Word, message: str) -> None:
    report.refuse(path, reason, message, condition="Invalid")
