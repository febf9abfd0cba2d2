"""Reasons of routes: attachment, matching requests, and references.

In: nothing.
Out: `ROUTES`.
"""

from __future__ import annotations

from edgefast.diagnostics.reasons.objects import backend_tls, gateway, route, security
from edgefast.diagnostics.reasons.word import Page

__all__ = ["ROUTES"]

_TO_SHOP = "rules: [{backendRefs: [{name: shop, port: 80}]}]\n"
_500 = "The rule's share of requests to it gets 500."
_ELSEWHERE = """\
apiVersion: v1
kind: Service
metadata: {name: stock, namespace: warehouse}
spec: {ports: [{port: 80}]}
"""

ROUTES = (
    Page(
        word="BackendNotFound",
        means="A `backendRef` or a filter refers to a Service or Backend that does not exist. "
        f"{_500}",
        fix=(
            "Create the object, or correct the name. Without `namespace` it must be in the "
            "namespace of the route.",
        ),
        example=route("rules: [{backendRefs: [{name: shopp, port: 80}]}]"),
    ),
    Page(
        word="EndpointsNotFound",
        means="A backend exists but has no ready endpoint: its share of the requests gets 503. "
        "The warning disappears when endpoints are ready.",
        fix=(
            "In a cluster: check the pods of the Service, its selector and its EndpointSlices.",
            "In files: write an EndpointSlice with the label `kubernetes.io/service-name` and "
            "a port of the same name.",
            "Only proxies report a name that does not resolve: correct the name, or the DNS "
            "resolver of their machine. They retry.",
        ),
        example="apiVersion: v1\nkind: Service\nmetadata: {name: empty}\nspec: {ports: [{port: 80}]}\n---\n"
        + route("rules: [{backendRefs: [{name: empty, port: 80}]}]"),
    ),
    Page(
        word="PodsNotRead",
        means="The Pods that an XBackend selects cannot be read: the API server refuses the "
        "request, fails, or has not answered yet. Pods known before stay in use, even if "
        "they have ended. Without any, the backend has no endpoints and its requests get "
        "503. The warning disappears when the Pods are read.",
        fix=(
            "Forbidden: the chart grants the controller `list` and `watch` of Pods (in watched "
            "namespaces or in the cluster) if `extensionApis.enableXBackend` is set at its "
            "installation.",
            "Any other error comes from the API server: see the controller's `/ready` and log.",
        ),
        seen="XBackend default/carts spec.endpointSelector.matchLabels: PodsNotRead its Pods "
        "cannot be read (Forbidden), the Pods known before stay in use",
        where="In the status of the XBackend (`ResolvedRefs`), in Events and in `edgefast explain --live`.",
    ),
    Page(
        word="IncompatibleFilters",
        means="Filters of a rule exclude each other: the rule answers 500. An API server with "
        "the CRDs of the Gateway API refuses such a route, and files are refused with "
        "Forbidden or Duplicate. The reason appears only with other CRDs.",
        fix=(
            "Use a redirect or a backend: a rule with RequestRedirect must not have URLRewrite "
            "or backends.",
        ),
        seen="HTTPRoute default/shop: Accepted=False IncompatibleFilters: HTTPRoute default/shop spec.rules[0].filters[1].type: "
        "Forbidden URLRewrite beside RequestRedirect",
    ),
    Page(
        word="InvalidBackendRef",
        means="The backend exists but is invalid: the Backend itself, or the BackendTLSPolicy of "
        f"the Service. {_500}",
        fix=("Correct the other object; the message has its error.",),
        example=backend_tls(
            "validation:\n"
            "  hostname: shop.example\n"
            '  caCertificateRefs: [{group: "", kind: ConfigMap, name: authority}]\n'
        )
        + "---\n"
        + route(_TO_SHOP),
    ),
    Page(
        word="InvalidKind",
        means="A reference has a kind that is not allowed in this field, or that is not enabled "
        "(`extensionApis.enableBackend`, `enableXBackend`). " + _500,
        fix=(
            'Write the core group as `""`, and kinds in the singular.',
            "For names outside the cluster use a Backend with `fqdn`.",
        ),
        example=route("rules: [{backendRefs: [{kind: Pod, name: shop-0, port: 80}]}]"),
    ),
    Page(
        word="NoMatchingListenerHostname",
        means="No hostname of the route matches a listener of its parent, so the route gets no "
        "requests from this parent.",
        fix=(
            "Change `hostnames`, or add a listener. `*.example.com` covers names below example.com, not itself.",
        ),
        example=gateway(
            'listeners: [{name: http, port: 8080, protocol: HTTP, hostname: "*.example.com"}]'
        )
        + "---\n"
        + route("hostnames: [shop.example.org]\n" + _TO_SHOP),
    ),
    Page(
        word="NoMatchingParent",
        means="The parent Gateway or ListenerSet of the route does not exist, has no listener "
        "with that `sectionName` or `port`, or belongs to another controller.",
        fix=(
            "Correct `parentRefs`; the message lists the listeners of the parent.",
            "Check that the class of the Gateway belongs to this controller: `kubectl get "
            "gatewayclass`.",
        ),
        example=route(_TO_SHOP, parent="{name: edge, sectionName: https}"),
    ),
    Page(
        word="NotAllowedByListeners",
        means="No listener of the parent allows routes of this namespace or kind "
        "(`allowedRoutes`). The default is the Gateway's namespace. Or an older route of "
        "the other kind (HTTPRoute or GRPCRoute) has the same host: a listener serves only "
        "one kind of route for a host.",
        fix=(
            "Let the Gateway's owner allow it (`allowedRoutes.namespaces.from: All` or a "
            "selector), or move the route. Use different hostnames or listeners for the two "
            "kinds.",
        ),
        example="apiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\nmetadata: {name: stock, namespace: warehouse}\n"
        "spec:\n  parentRefs: [{name: edge, namespace: default}]\n"
        "  rules: [{filters: [{type: RequestRedirect, requestRedirect: {scheme: https}}]}]\n",
    ),
    Page(
        word="PortNotFound",
        means=f"The backend has no such port. {_500}",
        fix=(
            "`port` is the Service's `port`, not the pods' `targetPort`. The message lists the "
            "existing ports.",
        ),
        example=route("rules: [{backendRefs: [{name: shop, port: 8080}]}]"),
    ),
    Page(
        word="PortNotSpecified",
        means=f"A `backendRef` to a Service has no `port`. {_500} Files and an API server with "
        "the CRDs of the Gateway API refuse it earlier.",
        fix=("Write the Service's port.",),
        seen="HTTPRoute default/shop spec.rules[0].backendRefs[0].port: PortNotSpecified Service default/shop needs a port (80)",
    ),
    Page(
        word="RefNotPermitted",
        means="A reference to another namespace is not allowed by a ReferenceGrant there. For a "
        "backend, its share of the requests gets 500. For a certificate, the listener does "
        "not serve it.",
        fix=(
            "Let the owner of the other namespace create a ReferenceGrant there, or move the "
            "object.",
        ),
        example=_ELSEWHERE
        + "---\n"
        + route("rules: [{backendRefs: [{name: stock, namespace: warehouse, port: 80}]}]"),
    ),
    Page(
        word="RouteRulesOverlap",
        means="A match equals one of another route at the same hostname, so only one of the two "
        "gets the requests: the older route, then the first by name (Gateway API, "
        "HTTPRouteRule). It is a condition of the route and a warning of `check`; both "
        "routes are served.",
        fix=(
            "Remove the match from one of the two; the message names the route that gets the "
            "requests. `edgefast explain` shows it for a request.",
        ),
        example=route(
            "rules: [{matches: [{path: {value: /cart}}], backendRefs: [{name: shop, port: 80}]}]",
            "a",
        )
        + "---\n"
        + route(
            "rules: [{matches: [{path: {value: /cart}}], backendRefs: [{name: shop, port: 80}]}]",
            "b",
        ),
    ),
    Page(
        word="RouteRulesShadowed",
        means="The condition of a route with rules, matches or hostnames that never get a "
        "request. The route is served. The problems in its message are "
        "[Shadowed](Shadowed.md).",
        fix=("Same as for Shadowed.",),
        example=route(
            "rules:\n"
            "- {name: all, backendRefs: [{name: shop, port: 80}]}\n"
            "- {name: again, matches: [{path: {value: /}}], backendRefs: [{name: shop, port: 80}]}\n"
        ),
    ),
    Page(
        word="Shadowed",
        means="A rule, a match or a hostname never gets a request, because others with "
        "precedence match all of them ([how](../guides/explain.md)). It is a warning; it has no "
        "other effect.",
        fix=(
            "Remove it, or make it more specific than the match that the message names.",
            "Precedence: longer path, then method, headers, query parameters, age of the "
            "route, order of rules.",
        ),
        example=route(
            "rules:\n"
            "- matches: [{path: {value: /cart}}]\n"
            "  backendRefs: [{name: shop, port: 80}]\n"
            "- matches: [{path: {value: /cart}}]\n"
            "  filters: [{type: RequestRedirect, requestRedirect: {scheme: https}}]\n"
        ),
    ),
    Page(
        word="Conflicted",
        means="An older policy of the kind has the same target. Of BackendTLSPolicies (by "
        "Service and port) only the older one is in force. Of SecurityPolicies and "
        "BackendTrafficPolicies the newer one applies only to features that the older one "
        "does not set.",
        fix=("Keep one of the two, or use a different target for each with `sectionName`.",),
        example=backend_tls(
            "validation: {hostname: a.example, wellKnownCACertificates: System}", "a"
        )
        + "---\n"
        + backend_tls("validation: {hostname: b.example, wellKnownCACertificates: System}", "b"),
    ),
    Page(
        word="InvalidCredentialRef",
        means="The credentials of a SecurityPolicy are missing or invalid: a Secret with API "
        "keys or with names and passwords, or a ConfigMap with a key set. Requests to the "
        "policy's targets get 500, because edgefast cannot authenticate clients.",
        fix=(
            "Create the Secret. For `apiKeyAuth` each name in it is a client id, and its value "
            "is the key of the client. For `basicAuth` `.htpasswd` has a line `name:hash` for "
            "each user, in the format of `htpasswd -B`, `-m` or `-s`.",
            "For `jwt` create the ConfigMap with a JSON Web Key Set under `jwks`.",
        ),
        example=security("{kind: HTTPRoute, name: shop}", "basicAuth: {users: {name: users}}\n")
        + "---\n"
        + route("rules: [{backendRefs: [{name: shop, port: 80}]}]"),
    ),
    Page(
        word="Overridden",
        means="A setting of a SecurityPolicy or BackendTrafficPolicy has no effect: a policy of "
        "a higher level with `mergeType: Override`, or policies of all lower levels (the "
        "listeners of a Gateway, the rules of a route), replace it. The message names "
        "them.",
        fix=(
            "If this is intended, remove the setting from the policy; otherwise change the "
            "policy that the message names.",
            "`edgefast explain` prints the policies that apply to a request.",
        ),
        example=security(
            "{kind: Gateway, name: edge}",
            "mergeType: Override\n"
            "extAuth: {http: {backendRef: {name: shop, port: 80}}, timeout: 1s}\n",
            "everywhere",
        )
        + "---\n"
        + security(
            "{kind: HTTPRoute, name: shop}",
            "extAuth: {http: {backendRef: {name: shop, port: 80}}, timeout: 2s}\n",
        )
        + "---\n"
        + route("rules: [{backendRefs: [{name: shop, port: 80}]}]"),
    ),
    Page(
        word="TargetNotFound",
        means="A target of a policy does not exist: the Service or port of a BackendTLSPolicy; "
        "the Gateway, ListenerSet, route, listener or named rule of a SecurityPolicy or "
        "BackendTrafficPolicy; or the Service or Backend of a BackendTrafficPolicy. The "
        "policy has no effect there.",
        fix=(
            "Correct `targetRefs`; `sectionName` is the name of a port (not its number), of a "
            "listener, or of a rule (`spec.rules[].name`).",
        ),
        example="apiVersion: gateway.networking.k8s.io/v1\nkind: BackendTLSPolicy\nmetadata: {name: stock}\nspec:\n"
        '  targetRefs: [{group: "", kind: Service, name: stock}]\n'
        "  validation: {hostname: stock.example, wellKnownCACertificates: System}\n",
    ),
)
