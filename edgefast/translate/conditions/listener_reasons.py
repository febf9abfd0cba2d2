"""Listener reasons: the reasons of listener conditions, a part of reasons.py.

In: nothing. Out: the reasons. Must never: hold a reason that no golden case has.
"""

from __future__ import annotations

from edgefast.api.kinds import EDGE_GROUP
from edgefast.translate.conditions.condition import Reason

__all__ = ["LISTENER_REASONS"]

_CONFLICT = "Gateways share a port only where protocol, hostname and client verification allow it"

LISTENER_REASONS: tuple[Reason, ...] = (
    Reason("Accepted", "True", "Accepted", "The listener is valid."),
    Reason(
        "Accepted",
        "False",
        "UnsupportedProtocol",
        "The protocol is not HTTP, HTTPS, TLS, TCP or UDP.",
    ),
    Reason(
        "Accepted",
        "False",
        "PortUnavailable",
        "Another listener uses the port or its container port with other settings.",
    ),
    Reason(
        "Accepted",
        "False",
        "NoValidCACertificate",
        "The listener verifies clients, but has no valid CA certificate.",
    ),
    Reason(
        "Accepted",
        "False",
        "UnsupportedValue",
        "A field has a value that is not served: TLS mode or option, an IP address as hostname, a type of filter.",
    ),
    Reason(
        "Accepted",
        "False",
        "InvalidListenerFilter",
        "A filter has an error: all requests of the listener get 500. A listener for TLS, TCP "
        "or UDP is closed.",
    ),
    Reason("Accepted", "False", "HostnameConflict", f"Same as Conflicted. {_CONFLICT}."),
    Reason("Accepted", "False", "ProtocolConflict", f"Same as Conflicted. {_CONFLICT}."),
    Reason("Programmed", "True", "Programmed", "The listener is served."),
    Reason(
        "Programmed",
        "False",
        "Invalid",
        "The listener is not served; the message gives the reason.",
    ),
    Reason("Programmed", "False", "HostnameConflict", "Same as Conflicted, in a ListenerSet."),
    Reason("Programmed", "False", "ProtocolConflict", "Same as Conflicted, in a ListenerSet."),
    Reason("ResolvedRefs", "True", "ResolvedRefs", "All references are resolved."),
    Reason(
        "ResolvedRefs",
        "False",
        "InvalidCertificateRef",
        "No certificate can be served: missing, broken, or not a Secret.",
    ),
    Reason(
        "ResolvedRefs",
        "False",
        "PartiallyInvalidCertificateRef",
        "Some certificates can be served, others not.",
        ours=True,
    ),
    Reason("ResolvedRefs", "False", "RefNotPermitted", "No ReferenceGrant allows the reference."),
    Reason(
        "ResolvedRefs",
        "False",
        "InvalidListenerFilterRef",
        "A filter refers to a service that cannot be called: all requests of the listener get 500.",
    ),
    Reason(
        "ResolvedRefs",
        "False",
        "InvalidRouteKinds",
        "`allowedRoutes.kinds` has a kind that listeners of the protocol do not support.",
    ),
    Reason(
        "ResolvedRefs",
        "False",
        "InvalidCACertificateRef",
        "A CA certificate is missing or broken.",
    ),
    Reason(
        "ResolvedRefs",
        "False",
        "InvalidCACertificateKind",
        "A CA certificate is in no ConfigMap, Secret or ClusterTrustBundle, or the API server has no ClusterTrustBundles.",
    ),
    Reason(
        "Conflicted",
        "True",
        "HostnameConflict",
        "Another listener has the port, protocol and hostname. In one Gateway both are refused; of "
        "several Gateways the oldest keeps it.",
    ),
    Reason(
        "Conflicted",
        "True",
        "ProtocolConflict",
        "Another listener has the port with another protocol.",
    ),
    Reason(
        "OverlappingTLSConfig",
        "True",
        "OverlappingHostnames",
        "Another HTTPS listener of the port covers hosts of the listener.",
    ),
    Reason(
        f"{EDGE_GROUP}/CertificateValid",
        "False",
        "CertificateNotValid",
        "A certificate has expired, is not valid yet, or is for other names than the listener's hostname. The listener serves it, and "
        "clients refuse it. The condition is absent otherwise.",
        ours=True,
    ),
    Reason(
        f"{EDGE_GROUP}/CertificateValid",
        "False",
        "CertificateExpiring",
        "A certificate expires within 14 days, or in the last quarter of a shorter life.",
        ours=True,
    ),
)
