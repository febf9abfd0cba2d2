"""Client TLS: client certificates of hosts (auth-tls-*), as rules of their TLS listeners.

In: annotations of one Ingress; the first Ingress of a host with auth-tls-secret, and its Secret. Out: `ClientTls`; the ir.ClientRule of a
host, or why it cannot be served.
Source: ingress-nginx annotations/authtls, controller.go (`createServers`), ssl_verify_client of nginx.
Must never: serve a host without the rule that its annotations ask for.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from edgefast import ir
from edgefast.api.core.secret import Secret
from edgefast.api.model.regex import check_regex
from edgefast.api.snapshot import Key
from edgefast.translate.ingress.annotation_reader import AnnotationReader
from edgefast.translate.ingress.values import (
    REGEX_CHARACTERS,
    Missing,
    NoValue,
    Values,
    one_of,
    pattern,
)
from edgefast.translate.tls.client_rule import MAX_DEPTH

__all__ = ["ClientTls", "check_client_secret", "read_client_tls"]

#: Annotations that mean nothing without auth-tls-secret.
_PARTS = (
    "auth-tls-error-page",
    "auth-tls-match-cn",
    "auth-tls-pass-certificate-to-upstream",
    "auth-tls-verify-client",
    "auth-tls-verify-depth",
)
_PAGE = pattern(r"^https?://[A-Za-z0-9\-.]+(:\d+)?(/[A-Za-z0-9\-_./~%?&=+]*)?$")
_SUBJECT = pattern(rf"{REGEX_CHARACTERS[:-3]}, ]*$")
_VERIFY = one_of("on", "off", "optional", "optional_no_ca")
_NAME = pattern(r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?/[a-z0-9]([-.a-z0-9]*[a-z0-9])?$")


class ClientTls(msgspec.Struct, frozen=True, kw_only=True):
    """The auth-tls-* annotations of an Ingress."""

    secret: Key
    rule: ir.ClientRule | None  # None: auth-tls-verify-client is off
    passes: bool = False  # the certificate goes to backends


def read_client_tls(reader: AnnotationReader) -> ClientTls | None:
    """Return the annotations; None without auth-tls-secret, or where all locations of the hosts are closed."""
    values, namespace, close = reader.values, reader.namespace, reader.close_host
    values.seen.update(("auth-tls-secret", *_PARTS))
    try:
        text = values.text("auth-tls-secret", lambda one: True)
    except NoValue:
        for name in _PARTS:
            if values.has(name):
                reader.warn(name, "no effect without auth-tls-secret")
        return None
    if not _NAME(text):
        close("auth-tls-secret", 'it must be "namespace/name" of a Secret')
        return None
    key = tuple(text.split("/", 1))
    if namespace and key[0] != namespace:
        close("auth-tls-secret", "a Secret of another namespace is not served")
        return None
    verify = _read(values, "auth-tls-verify-client", _VERIFY, "on", close)
    subject = _read(values, "auth-tls-match-cn", _SUBJECT, "", close)
    page = _read(values, "auth-tls-error-page", _PAGE, "", close)
    if verify is None or subject is None or page is None:
        return None
    if subject and ("CN=" not in subject or check_regex(subject)):
        close("auth-tls-match-cn", "it must contain CN= and be an RE2 expression")
        return None
    try:
        depth = values.number("auth-tls-verify-depth") or 1
    except NoValue:
        depth = 1
    if not 0 < depth <= MAX_DEPTH:
        close("auth-tls-verify-depth", f"{depth} is not served (allowed: 1 to {MAX_DEPTH})")
        return None
    try:
        passes = values.flag("auth-tls-pass-certificate-to-upstream")
    except NoValue:
        passes = False
    mode = {"on": "required", "optional": "optional", "optional_no_ca": "any_issuer"}.get(verify)
    rule = None
    if mode is not None:
        rule = msgspec.convert(
            {
                "ca": f"clients/{text}",
                "mode": mode,
                "depth": depth,
                "subject": subject,
                "error_page": page,
            },
            ir.ClientRule,
        )
    elif subject:
        close("auth-tls-match-cn", "it is not served with auth-tls-verify-client: off")
        return None
    return ClientTls(secret=(key[0], key[1]), rule=rule, passes=passes)


def _read(
    values: Values,
    name: str,
    check: Callable[[str], bool],
    default: str,
    close: Callable[[str, str], None],
) -> str | None:
    try:
        return values.text(name, check)
    except Missing:
        return default
    except NoValue:
        close(name, "not valid or not served")
        return None


def check_client_secret(secret: Secret | None, key: Key) -> str:
    """Return why the Secret of a host cannot verify clients, "" if it can."""
    from edgefast.translate.tls.certificate import (  # 25 ms, only with certificates
        check_revocation_lists,
        parse_bundle,
    )

    named = f"Secret {key[0]}/{key[1]}"
    if secret is None:
        return f"{named} not found"
    authorities = secret.value("ca.crt")
    if not authorities:
        return f"{named} lacks ca.crt"
    found = parse_bundle(authorities)
    if isinstance(found, str):
        return f"{named}: {found}"
    lists = secret.value("ca.crl") or b""
    wrong = check_revocation_lists(lists) if lists else ""
    return f"{named}: ca.crl: {wrong}" if wrong else ""
