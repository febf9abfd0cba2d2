"""Supported features: what `GatewayClass.status.supportedFeatures` claims.

In: nothing. Out: sorted names of Gateway API v1.6 features. The conformance suite runs the tests of
exactly these, so a name stands here only when the data plane does it from end to end.
Not here, because v1.6 has no such names yet: redirects and rewrites of single backendRefs. Not here,
because HTTP/2 is not spoken: HTTPRouteBackendProtocolH2C, GRPCRoute, TLSRoute, and
GatewayHTTPSListenerDetectMisdirectedRequests (421 is answered, but its test needs HTTP/2).
Must never: be computed from settings.
"""

from __future__ import annotations

SUPPORTED_FEATURES: tuple[str, ...] = tuple(
    sorted(
        {
            "BackendTLSPolicy",
            "BackendTLSPolicySANValidation",
            "Gateway",
            "GatewayBackendClientCertificate",
            "GatewayFrontendClientCertificateValidation",
            "GatewayFrontendClientCertificateValidationInsecureFallback",
            "GatewayHTTPListenerIsolation",
            "GatewayPort8080",
            "HTTPRoute",
            "HTTPRoute303RedirectStatusCode",
            "HTTPRoute307RedirectStatusCode",
            "HTTPRoute308RedirectStatusCode",
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
            "ReferenceGrant",
        }
    )
)
