"""XBackend: rules about XBackends: what an API server refuses in one, in the terms of its CRD.

In: parts of XBackends. Out: violations.
Source: CEL of Gateway API v1.7 XBackend, and of v1.6 where only that has the field.
Must never: refuse what the API accepts and only this product lacks; that goes to the status.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from edgefast.api.gateway.xbackend import (
    LABEL_KEY_PATTERN,
    EndpointSelector,
    ExternalHostname,
    XBackendPort,
    XBackendSpec,
    XBackendTLS,
)
from edgefast.api.model.fields import LABEL_VALUE_MOST, LABEL_VALUE_PATTERN
from edgefast.api.validation.hostname import check_hostname
from edgefast.api.validation.rule import RuleBook, Violation

__all__ = [
    "BOOK",
    "check_external_hostname",
    "check_labels",
    "check_port",
    "check_protocol",
    "check_session",
    "check_tls",
    "check_type",
]

BOOK = RuleBook()

_INSIDE = ".cluster.local"
_KEY, _VALUE = re.compile(LABEL_KEY_PATTERN), re.compile(LABEL_VALUE_PATTERN)
_SHOWN = 80  # characters of a wrong label that are told


@BOOK.on(XBackendPort, "number", "port")
def check_port(one: XBackendPort) -> Iterable[Violation]:
    """There is one port."""
    if one.number is None and one.port is None:
        return (Violation(("number",), "Required", "the port to connect to"),)
    if one.number is not None and one.port is not None:
        return (Violation(("port",), "Forbidden", "use number"),)
    return ()


@BOOK.on(ExternalHostname, "hostname")
def check_external_hostname(one: ExternalHostname) -> Iterable[Violation]:
    """What is outside has a name, and it is no Service's."""
    if message := check_hostname(one.hostname):
        return (Violation(("hostname",), "Invalid", message),)
    if f".{one.hostname}".endswith(_INSIDE):
        message = f'"{one.hostname}" (names of the cluster, {_INSIDE}, are not allowed)'
        return (Violation(("hostname",), "Invalid", message, "refer to the Service"),)
    return ()


@BOOK.on(EndpointSelector, "match_labels")
def check_labels(one: EndpointSelector) -> Iterable[Violation]:
    """Labels that a Pod can have; in a selector's text others would be operators ("z!" says: any but)."""
    for key, value in one.match_labels.items():
        if not _KEY.match(key):
            message = (
                f'"{key[:_SHOWN]}" (expected the key of a label such as app or example.com/app)'
            )
            yield Violation(("matchLabels",), "Invalid", message)
        elif len(value) > LABEL_VALUE_MOST or not _VALUE.match(value):
            message = f'"{value[:_SHOWN]}" (expected a label value: letters, digits, -, _ and .)'
            yield Violation(("matchLabels", key), "Invalid", message)


@BOOK.on(XBackendSpec, "type", "external_hostname", "endpoint_selector")
def check_type(one: XBackendSpec) -> Iterable[Violation]:
    """Exactly what `type` names."""
    for word, name, part in (
        ("ExternalHostname", "externalHostname", one.external_hostname),
        ("EndpointSelector", "endpointSelector", one.endpoint_selector),
    ):
        if one.type == word and part is None:
            yield Violation((name,), "Required", f"with type {one.type}")
        elif one.type != word and part is not None:
            yield Violation((name,), "Forbidden", f"with type {one.type} (it belongs to {word})")


@BOOK.on(XBackendSpec, "type", "session_persistence")
def check_session(one: XBackendSpec) -> Iterable[Violation]:
    """Of a name nobody knows what endpoints it has."""
    if one.session_persistence is not None and one.type != "EndpointSelector":
        message = f"with type {one.type} (it belongs to EndpointSelector)"
        return (Violation(("sessionPersistence",), "Forbidden", message),)
    return ()


@BOOK.on(XBackendSpec, "protocol", "tls")
def check_protocol(one: XBackendSpec) -> Iterable[Violation]:
    """What is spoken says whether it is inside TLS."""
    if one.protocol == "H2C" and one.encrypted:
        message = "with protocol H2C, which is without TLS"
        return (Violation(("tls", "mode"), "Forbidden", message, "use protocol HTTP2"),)
    if one.protocol in ("HTTP2", "WSS") and not one.encrypted:
        hint = "use protocol H2C without TLS" if one.protocol == "HTTP2" else ""
        message = f"with protocol {one.protocol}, which is inside TLS"
        return (Violation(("tls",), "Required", message, hint),)
    return ()


@BOOK.on(XBackendTLS, "mode", "client_certificate_ref", "validation")
def check_tls(one: XBackendTLS) -> Iterable[Violation]:
    """Exactly what `mode` needs."""
    for name, part, wanted in (
        ("clientCertificateRef", one.client_certificate_ref, one.mode == "ClientAndServer"),
        ("validation", one.validation, one.mode != "None"),
    ):
        if wanted and part is None:
            yield Violation((name,), "Required", f"with mode {one.mode}")
        elif not wanted and part is not None:
            yield Violation((name,), "Forbidden", f"with mode {one.mode}")
