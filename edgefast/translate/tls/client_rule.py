"""Client rule: client certificates of one listener, from the options of its `tls`.

In: `tls.options` of a listener, the keyring, grants. Out: ir.ClientRule with its authorities; problems go to the listener's report.
Rules of `spec.tls.frontend` are of a whole port and act in the handshake. This rule is of one listener and acts on requests, as
ssl_verify_client of nginx: a client without an accepted certificate gets 400 or a redirect.
Must never: serve a listener without the rule that its options ask for.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Literal

from edgefast import ir
from edgefast.api.model.regex import check_regex
from edgefast.translate.report.report import Report
from edgefast.translate.tls.keyring import Keyring

__all__ = ["CLIENT_OPTIONS", "translate_client_rule", "write_client_options"]

CLIENT_CA = "gateway.edge.io/client-ca"
CLIENT_MODE = "gateway.edge.io/client-certificate"
CLIENT_DEPTH = "gateway.edge.io/client-verify-depth"
CLIENT_SUBJECT = "gateway.edge.io/client-subject"
CLIENT_PAGE = "gateway.edge.io/client-error-page"
CLIENT_OPTIONS = (CLIENT_CA, CLIENT_MODE, CLIENT_DEPTH, CLIENT_SUBJECT, CLIENT_PAGE)

#: Certificates between that of a client and an authority, at most.
MAX_DEPTH = 16
#: Characters of an expression for the subject, and of the URL of an error page.
MAX_SUBJECT = 1024
MAX_PAGE = 2048

_Mode = Literal["required", "optional", "any_issuer"]
_MODES: dict[str, _Mode] = {
    "Required": "required",
    "Optional": "optional",
    "OptionalAnyIssuer": "any_issuer",
}


def write_client_options(secret: str, rule: ir.ClientRule) -> dict[str, str]:
    """Return the options of a rule; `secret`: "namespace/name" of its authorities."""
    mode = next(word for word, one in _MODES.items() if one == rule.mode)
    options = {CLIENT_CA: secret, CLIENT_MODE: mode, CLIENT_DEPTH: str(rule.depth)}
    if rule.subject:
        options[CLIENT_SUBJECT] = rule.subject
    if rule.error_page:
        options[CLIENT_PAGE] = rule.error_page
    return options


def translate_client_rule(
    options: Mapping[str, str],
    path: str,
    permits: Callable[[str, str], bool],
    keyring: Keyring,
    report: Report,
) -> tuple[ir.ClientRule, ir.Secret] | None:
    """Return the rule and its authorities; None without one, or with a refusal in the report.

    `path`: of the options; `permits`: whether a Secret (namespace, name) can be named.
    """
    given = [one for one in CLIENT_OPTIONS if one in options]
    if not given:
        return None
    before = len(report.refused)
    bundle = _find_authorities(options, path, permits, keyring, report)
    mode = _MODES.get(options.get(CLIENT_MODE, "Required"))
    if mode is None:
        _refuse(report, path, CLIENT_MODE, options, f"supported: {', '.join(_MODES)}")
    depth = options.get(CLIENT_DEPTH, "1")
    if not re.fullmatch("[0-9]{1,2}", depth) or int(depth) > MAX_DEPTH:
        _refuse(report, path, CLIENT_DEPTH, options, f"allowed: 0 to {MAX_DEPTH}")
    subject = options.get(CLIENT_SUBJECT, "")
    if len(subject) > MAX_SUBJECT or (subject and check_regex(subject)):
        _refuse(report, path, CLIENT_SUBJECT, options, f"RE2, at most {MAX_SUBJECT} characters")
    page = options.get(CLIENT_PAGE, "")
    if page and not _is_url(page):
        _refuse(report, path, CLIENT_PAGE, options, "allowed: a URL of http or https")
    if bundle is None or mode is None or len(report.refused) > before:
        return None
    rule = ir.ClientRule(
        ca=bundle.name, mode=mode, depth=int(depth), subject=subject, error_page=page
    )
    return rule, bundle


def _find_authorities(
    options: Mapping[str, str],
    path: str,
    permits: Callable[[str, str], bool],
    keyring: Keyring,
    report: Report,
) -> ir.Secret | None:
    where = f"{path}[{CLIENT_CA}]"
    namespace, slash, name = options.get(CLIENT_CA, "").partition("/")
    if not (namespace and slash and name):
        message = '"namespace/name" of a Secret with ca.crt is required'
        report.refuse(where, "Required", message, condition="NoValidCACertificate")
        return None
    if not permits(namespace, name):
        message = f"no ReferenceGrant permits Secret {namespace}/{name}"
        report.refuse(where, "RefNotPermitted", message, condition="NoValidCACertificate")
        return None
    found = keyring.clients(namespace, name)
    if isinstance(found, str):
        report.refuse(where, "NoValidCACertificate", found)
        return None
    return found


def _refuse(report: Report, path: str, key: str, options: Mapping[str, str], allowed: str) -> None:
    text = options.get(key, "")[:64]
    report.refuse(f"{path}[{key}]", "UnsupportedValue", f'"{text}" ({allowed})')


def _is_url(text: str) -> bool:
    return (
        len(text) <= MAX_PAGE
        and text.startswith(("http://", "https://"))
        and text.isascii()
        and text.isprintable()
        and " " not in text
        and "$" not in text
    )
