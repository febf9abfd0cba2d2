"""Supported features: what `GatewayClass.status.supportedFeatures` claims.

In: how fleets are deployed. Out: sorted names of Gateway API v1.6 features. The conformance suite runs
the tests of exactly these, so a name stands here only when the data plane does it from end to end.
Not here, because v1.6 has no such names yet: redirects and rewrites of single backendRefs. Not here,
because TLS is not passed through: TLSRoute.
Must never: claim what only another deployment mode has.
"""

from __future__ import annotations

#: Where a fleet is in the namespace of its Gateway alone: the API looks for the labels and annotations of
#: spec.infrastructure there.
INFRASTRUCTURE = "GatewayInfrastructure"

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
            "HTTPRouteRetry",
            "HTTPRouteRetryBackendTimeout",
            "HTTPRouteRetryConnectionError",
            "HTTPRouteSchemeRedirect",
            "ListenerSet",
            "ReferenceGrant",
        }
    )
)


def supported_features(*, in_gateway_namespace: bool) -> tuple[str, ...]:
    """Return what a class supports."""
    own = {INFRASTRUCTURE} if in_gateway_namespace else set()
    return tuple(sorted(own | set(SUPPORTED_FEATURES)))
