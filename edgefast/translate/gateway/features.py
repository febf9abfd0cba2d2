"""Features: the value of `GatewayClass.status.supportedFeatures`.

In: the deployment mode of fleets, the release of the CRDs, the missing kinds. Out: sorted names of
features of that release. The conformance suite runs the tests of exactly these, so a name is here
only when the data plane supports it from end to end. Not here, because no release has such a name
yet: redirects of single backendRefs. Features of layer 4 follow from the served protocols
(protocol.py).
Must never: claim what only another deployment mode has, or a kind that the API server does not
serve.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from edgefast.translate.gateway.protocol import served
from edgefast.translate.settings import RELEASES

#: Where a fleet is in the namespace of its Gateway alone: the API looks for the labels and annotations of
#: spec.infrastructure there.
INFRASTRUCTURE = "GatewayInfrastructure"

#: Names that all releases have.
SUPPORTED_FEATURES: tuple[str, ...] = tuple(
    sorted(
        {
            "BackendTLSPolicy",
            "BackendTLSPolicySANValidation",
            "GRPCRoute",
            "GRPCRouteNamedRouteRule",
            "Gateway",
            "GatewayAddressEmpty",
            "GatewayBackendClientCertificate",
            "GatewayFrontendClientCertificateValidation",
            "GatewayFrontendClientCertificateValidationInsecureFallback",
            "GatewayHTTPListenerIsolation",
            "GatewayHTTPSListenerDetectMisdirectedRequests",
            "GatewayPort8080",
            "GatewayStaticAddresses",
            "HTTPRoute",
            "HTTPRoute303RedirectStatusCode",
            "HTTPRoute307RedirectStatusCode",
            "HTTPRoute308RedirectStatusCode",
            "HTTPRouteBackendProtocolH2C",
            "HTTPRouteBackendProtocolWebSocket",
            "HTTPRouteBackendRequestHeaderModification",
            "HTTPRouteBackendTimeout",
            "HTTPRouteCORS",
            "HTTPRouteDestinationPortMatching",
            "HTTPRouteHostRewrite",
            "HTTPRouteMethodMatching",
            "HTTPRouteNamedRouteRule",
            "HTTPRouteParentRefPort",
            "HTTPRoutePathRedirect",
            "HTTPRoutePathRewrite",
            "HTTPRoutePortRedirect",
            "HTTPRouteQueryParamMatching",
            "HTTPRouteRequestMirror",
            "HTTPRouteRequestMultipleMirrors",
            "HTTPRouteRequestPercentageMirror",
            "HTTPRouteRequestTimeout",
            "HTTPRouteResponseHeaderModification",
            "HTTPRouteRetryConnectionError",
            "HTTPRouteSchemeRedirect",
            "ListenerSet",
            "ReferenceGrant",
        }
    )
)


#: Names that a release has and the others do not. What they name is served whatever the release.
ONLY_IN: dict[str, frozenset[str]] = {
    "v1.6": frozenset({"HTTPRouteRetry", "HTTPRouteRetryBackendTimeout"}),
    "v1.7": frozenset(
        {
            "ClusterTrustBundle",
            "GRPCRouteRequestHeaderModifier",
            "GatewayListenerFilters",
            "GatewayRouteHostnameIntersectionPrecedence",
            "HTTPRouteBackendURLRewrite",
            "HTTPRouteRetryCodes",
        }
    ),
}


#: By protocol.
STREAM_FEATURES: Mapping[str, tuple[str, ...]] = {
    "TLS": ("TLSRoute", "TLSRouteModeMixed", "TLSRouteModeTerminate"),
    "TCP": ("TCPRoute",),
    "UDP": ("UDPRoute",),
}


def supported_features(
    *, in_gateway_namespace: bool, release: str = RELEASES[-1], missing: Collection[str] = ()
) -> tuple[str, ...]:
    """Return what a class supports.

    `release` is one of RELEASES, any other is taken for the newest. `missing`: kinds that the API server does not have;
    features are called after them.
    """
    own = {INFRASTRUCTURE} if in_gateway_namespace else set()
    own.update(name for one in served() for name in STREAM_FEATURES.get(one, ()))
    named = own.union(SUPPORTED_FEATURES, ONLY_IN.get(release, ONLY_IN[RELEASES[-1]]))
    return tuple(sorted(name for name in named if not name.startswith(tuple(missing))))
