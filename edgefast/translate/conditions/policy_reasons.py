"""Policy reasons: the reasons of policy conditions, by kind, a part of reasons.py.

In: nothing. Out: the reasons. Must never: hold a reason that no golden case has.
"""

from __future__ import annotations

from edgefast.translate.conditions.condition import Reason

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
            "The Service or port does not exist. If only the port is missing, requests to all "
            "ports without a policy are refused, because the policy can be for any of them.",
        ),
        Reason("Accepted", "False", "Invalid", "A field has a value that is not supported."),
        Reason(
            "Accepted",
            "False",
            "NoValidCACertificate",
            "The policy has no valid CA certificate; requests to the backend get 500.",
        ),
        Reason(
            "Accepted",
            "False",
            "InvalidClientCertificateRef",
            "The Secret of `gateway.edge.io/client-certificate` is missing or invalid; requests to "
            "the backend get 500.",
            ours=True,
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
        Reason("Accepted", "True", "Accepted", "Its targets exist and it is valid."),
        Reason(
            "Accepted",
            "False",
            "Conflicted",
            "An older policy of the kind has the target already; the message names the fields. "
            "This policy applies to the fields that the older one does not set.",
        ),
        Reason(
            "Accepted",
            "False",
            "TargetNotFound",
            "A target, or a listener or named rule of it, does not exist. If the ancestor of "
            "the entry is the target itself, no target belongs to a Gateway.",
        ),
        Reason(
            "Accepted",
            "False",
            "Invalid",
            "A field or its value is not supported. The affected requests get 500.",
        ),
        Reason("ResolvedRefs", "True", "ResolvedRefs", "All references are resolved."),
        Reason(
            "ResolvedRefs",
            "False",
            "BackendNotFound",
            "An authorization service does not exist; requests that need it get 500. The "
            "reasons of a route's backends can appear here, too.",
        ),
        Reason(
            "ResolvedRefs",
            "False",
            "InvalidBackendRef",
            "An authorization service or a JWKS backend is an invalid Backend, for example one "
            "with an address that is not allowed.",
            ours=True,
        ),
        Reason(
            "ResolvedRefs",
            "False",
            "UnsupportedProtocol",
            "The port of an authorization service has an unsupported protocol; a gRPC service "
            "needs HTTP/2.",
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
            "A Secret with keys or passwords, or a ConfigMap with a key set, is missing or "
            "invalid; the affected requests get 500.",
        ),
        Reason(
            "BackendsAvailable",
            "False",
            "EndpointsNotFound",
            "An authorization service or the Service of a key set has no endpoints; requests "
            "that need it are refused. The condition is absent otherwise.",
            ours=True,
        ),
        Reason("Programmed", "True", "Programmed", "All ready proxies of the Gateway apply it."),
        Reason(
            "Programmed",
            "False",
            "Overridden",
            "A setting of it has no effect below this Gateway; the message names the setting "
            "and the policy that overrides it.",
            ours=True,
        ),
        Reason(
            "Programmed",
            "False",
            "Invalid",
            "Requests to its targets get 500; the message gives the reason.",
        ),
        Reason(
            "Programmed",
            "False",
            "NotSupported",
            "A field of it cannot decide about the connections of a TCPRoute, TLSRoute or "
            "UDPRoute; these are refused. The message names the field and the route.",
        ),
        Reason(
            "Programmed",
            "False",
            "TargetNotFound",
            "No target below this Gateway exists.",
        ),
    ),
    "XBackendTrafficPolicy": (
        Reason("Accepted", "True", "Accepted", "The policy is in force at its targets."),
        Reason("Accepted", "False", "Conflicted", "An older policy of the kind has the target."),
        Reason(
            "Accepted", "False", "TargetNotFound", "A target does not exist, or has another kind."
        ),
        Reason("Accepted", "False", "Invalid", "Requests to its targets get 500."),
        Reason("ResolvedRefs", "True", "ResolvedRefs", "It has no references."),
        Reason("Programmed", "True", "Programmed", "All ready proxies of the Gateway have it."),
        Reason("Programmed", "False", "Invalid", "Requests to its targets get 500."),
        Reason("Programmed", "False", "Overridden", "An older policy has its targets.", ours=True),
    ),
    "XBackend": (
        Reason("Accepted", "True", "Accepted", "Requests can be sent to it."),
        Reason(
            "Accepted",
            "False",
            "Invalid",
            "It is invalid, has a reference that does not exist or is not allowed, or selects "
            "Pods by too many sets of labels. Requests to it get 500.",
            ours=True,
        ),
        Reason(
            "ResolvedRefs",
            "False",
            "PodsNotRead",
            "The Pods that it selects cannot be read. Pods known before stay in use; without "
            "any, its requests get 503. The condition is absent otherwise.",
            ours=True,
        ),
    ),
    "BackendTrafficPolicy": (
        Reason(
            "Accepted", "True", "Accepted", "Same as for a SecurityPolicy; the other reasons, too."
        ),
        Reason("Accepted", "False", "Conflicted", "An older policy of the kind has the target."),
        Reason("Accepted", "False", "TargetNotFound", "A target or a part of it does not exist."),
        Reason("Accepted", "False", "Invalid", "Its requests get 500."),
        Reason("ResolvedRefs", "True", "ResolvedRefs", "All references are resolved."),
        Reason(
            "ResolvedRefs",
            "False",
            "NotFound",
            "A ConfigMap with the body of an answer is missing, or has no body; its requests "
            "get 500.",
        ),
        Reason(
            "ResolvedRefs",
            "False",
            "BackendNotFound",
            "A service of `responseOverride` does not exist; its requests get 500.",
        ),
        Reason(
            "ResolvedRefs",
            "False",
            "RefNotPermitted",
            "No ReferenceGrant allows it (`from`: group `gateway.edge.io`, kind "
            "`BackendTrafficPolicy`).",
        ),
        Reason(
            "BackendsAvailable",
            "False",
            "EndpointsNotFound",
            "A service of `responseOverride` has no endpoints; clients get the plain error. The "
            "condition is absent otherwise.",
            ours=True,
        ),
        Reason("Programmed", "True", "Programmed", "All ready proxies of the Gateway have it."),
        Reason("Programmed", "False", "Invalid", "Its requests get 500."),
        Reason(
            "Programmed",
            "False",
            "NotSupported",
            "A setting has no effect on connections of a TCPRoute, TLSRoute or UDPRoute that the "
            "policy names; the message names the setting. Its other settings apply.",
            ours=True,
        ),
        Reason("Programmed", "False", "TargetNotFound", "No target below this Gateway exists."),
        Reason(
            "Programmed",
            "False",
            "Overridden",
            "A route replaces it, or an older policy has its target.",
            ours=True,
        ),
    ),
}
