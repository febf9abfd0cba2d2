"""What conditions of policies say, by kind: part of reasons.py.

In: nothing. Out: the reasons. Must never: hold a reason that no golden case has.
"""

from __future__ import annotations

from edgefast.translate.status.reason import Reason

__all__ = ["POLICY_REASONS"]

POLICY_REASONS: dict[str, tuple[Reason, ...]] = {
    "BackendTLSPolicy": (
        Reason("Accepted", "True", "Accepted", "Connections to the Service use it."),
        Reason(
            "Accepted", "False", "Conflicted", "An older policy has the Service and port already."
        ),
        Reason(
            "Accepted",
            "False",
            "TargetNotFound",
            "There is no such Service or port. Of a Service without the port nothing is sent to ports without a policy: it may be any of them.",
        ),
        Reason("Accepted", "False", "Invalid", "A field has a value that is not supported."),
        Reason(
            "Accepted",
            "False",
            "NoValidCACertificate",
            "Nothing is there to verify the backend with; requests to it get 500.",
        ),
        Reason("ResolvedRefs", "True", "ResolvedRefs", "All references are resolved."),
        Reason(
            "ResolvedRefs",
            "False",
            "InvalidCACertificateRef",
            "A CA certificate is missing or broken.",
        ),
        Reason(
            "ResolvedRefs",
            "False",
            "InvalidKind",
            "A CA certificate is in no ConfigMap, Secret or ClusterTrustBundle, or the API server has no ClusterTrustBundles.",
        ),
    ),
    "SecurityPolicy": (
        Reason(
            "Accepted", "True", "Accepted", "Its targets are there, and nothing in it is wrong."
        ),
        Reason(
            "Accepted",
            "False",
            "Conflicted",
            "An older policy of the kind has the target already; the message says for what. What it does not say, this one does.",
        ),
        Reason(
            "Accepted",
            "False",
            "TargetNotFound",
            "A target, a listener or a named rule of it is not there. An entry whose ancestor is the target itself: no target leads to a "
            "Gateway.",
        ),
        Reason(
            "Accepted",
            "False",
            "Invalid",
            "A field has a value that is not supported, or is not available yet. What it is part of answers 500.",
        ),
        Reason("ResolvedRefs", "True", "ResolvedRefs", "All references are resolved."),
        Reason(
            "ResolvedRefs",
            "False",
            "BackendNotFound",
            "An authorisation service is not there; what asks it answers 500. The reasons of a route's backends may stand here, too.",
        ),
        Reason(
            "ResolvedRefs",
            "False",
            "InvalidBackendRef",
            "An authorisation service or a JWKS backend is a broken Backend, for example one with an address that is never a backend.",
            ours=True,
        ),
        Reason(
            "ResolvedRefs",
            "False",
            "UnsupportedProtocol",
            "The port of an authorisation service wants a protocol that it is not spoken to in; of gRPC that is HTTP/2 alone.",
        ),
        Reason(
            "ResolvedRefs",
            "False",
            "RefNotPermitted",
            "No ReferenceGrant allows it (`from`: group `gateway.edge.io`, kind `SecurityPolicy`).",
        ),
        Reason(
            "ResolvedRefs",
            "False",
            "InvalidCredentialRef",
            "A Secret with keys or passwords, or a ConfigMap with a key set, is missing or has a mistake; what they are for answers 500.",
        ),
        Reason(
            "BackendsAvailable",
            "False",
            "EndpointsNotFound",
            "An authorisation service or the Service of a key set has no endpoints; requests that need it are refused. The condition is absent otherwise.",
            ours=True,
        ),
        Reason(
            "Programmed", "True", "Programmed", "All ready proxies of the Gateway do what it says."
        ),
        Reason(
            "Programmed",
            "False",
            "Overridden",
            "Something that it says holds nowhere below this Gateway; the message says what, and by whom.",
            ours=True,
        ),
        Reason(
            "Programmed",
            "False",
            "Invalid",
            "Requests that it is for are answered 500; the message says why.",
        ),
        Reason(
            "Programmed",
            "False",
            "NotSupported",
            "It names routes of layer 4, or they are below it: policies cannot hold for them yet, and what comes to them is refused. Or, of a BackendTrafficPolicy, its health check of a backend is one too many. The message names them.",
        ),
        Reason(
            "Programmed",
            "False",
            "TargetNotFound",
            "No target below this Gateway is there.",
        ),
    ),
    "XBackendTrafficPolicy": (
        Reason("Accepted", "True", "Accepted", "The policy is in force at its targets."),
        Reason("Accepted", "False", "Conflicted", "An older policy of the kind has the target."),
        Reason("Accepted", "False", "TargetNotFound", "A target is not there, or of another kind."),
        Reason("Accepted", "False", "Invalid", "Requests to its targets are answered 500."),
        Reason("ResolvedRefs", "True", "ResolvedRefs", "It refers to nothing."),
        Reason("Programmed", "True", "Programmed", "All ready proxies of the Gateway have it."),
        Reason("Programmed", "False", "Invalid", "Requests to its targets are answered 500."),
        Reason("Programmed", "False", "Overridden", "An older policy has its targets.", ours=True),
    ),
    "XBackend": (
        Reason("Accepted", "True", "Accepted", "Requests can be sent to it."),
        Reason(
            "Accepted",
            "False",
            "Invalid",
            "It has a mistake, refers to what is not there or may not be used, or selects Pods by more labels than are followed. Requests "
            "to it are answered 500.",
            ours=True,
        ),
        Reason(
            "ResolvedRefs",
            "False",
            "PodsNotRead",
            "The Pods that it selects cannot be read. Those that were known stay; without any its requests are answered 503. It is there only "
            "while that is so.",
            ours=True,
        ),
    ),
    "BackendTrafficPolicy": (
        Reason("Accepted", "True", "Accepted", "As of a SecurityPolicy, and so are the others."),
        Reason("Accepted", "False", "Conflicted", "An older policy of the kind has the target."),
        Reason("Accepted", "False", "TargetNotFound", "A target or a part of it is not there."),
        Reason("Accepted", "False", "Invalid", "Its requests are answered 500."),
        Reason("ResolvedRefs", "True", "ResolvedRefs", "All references are resolved."),
        Reason(
            "ResolvedRefs",
            "False",
            "NotFound",
            "A ConfigMap with the body of an answer is missing, or has none; its requests are answered 500.",
        ),
        Reason("Programmed", "True", "Programmed", "All ready proxies of the Gateway have it."),
        Reason("Programmed", "False", "Invalid", "Its requests are answered 500."),
        Reason("Programmed", "False", "TargetNotFound", "No target below this Gateway is there."),
        Reason(
            "Programmed",
            "False",
            "Overridden",
            "A route replaces it, or an older policy has its target.",
            ours=True,
        ),
    ),
}
