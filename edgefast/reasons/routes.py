"""Reasons of routes: where they attach, which requests they get, and what their references lead to.

In: nothing. Out: `ROUTES`.
"""

from __future__ import annotations

from edgefast.reasons.objects import backend_tls, gateway, route, security
from edgefast.reasons.word import Page

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
        means=f"A `backendRef` names a Service or Backend that is not there, or a filter one that is not there. {_500}",
        fix=(
            "Write the object, or correct the name. Without `namespace` it is sought beside the route.",
        ),
        example=route("rules: [{backendRefs: [{name: shopp, port: 80}]}]"),
    ),
    Page(
        word="EndpointsNotFound",
        means="A backend is there and has no endpoint that is ready: its share of the requests gets 503. A warning; it goes away "
        "when endpoints come.",
        fix=(
            "In a cluster: look at the pods of the Service, its selector and its EndpointSlices.",
            "In files: write an EndpointSlice with the label `kubernetes.io/service-name`, and a port of the same name.",
            "A name that does not resolve is told by proxies alone: correct it, or the resolver of their machine; they ask again "
            "and again.",
        ),
        example="apiVersion: v1\nkind: Service\nmetadata: {name: empty}\nspec: {ports: [{port: 80}]}\n---\n"
        + route("rules: [{backendRefs: [{name: empty, port: 80}]}]"),
    ),
    Page(
        word="PodsNotRead",
        means="The Pods that an XBackend selects cannot be read: the API server refuses it, fails again and again, or has not answered yet. Those "
        "that were known before stay, whatever has become of them; without any the backend has no endpoints, and its requests get 503. A "
        "warning; it goes away when they are read.",
        fix=(
            "Forbidden: the controller's role has `list` and `watch` of Pods where `extensionApis.enableXBackend` was set when it was installed; "
            "the chart makes it, in watched namespaces or for the cluster.",
            "Anything else is the API server's: the controller's `/ready` and log have its words.",
        ),
        seen="XBackend default/carts spec.endpointSelector.matchLabels: PodsNotRead its Pods cannot be read (Forbidden), those that were known "
        "before stay",
        where="In the status of the XBackend (`ResolvedRefs`), in Events and in `edgefast explain --live`.",
    ),
    Page(
        word="IncompatibleFilters",
        means="Filters of a rule exclude each other: the rule answers 500. An API server with the CRDs of the Gateway API does "
        "not take such a route, and files are refused with Forbidden or Duplicate; it comes from servers with other CRDs.",
        fix=(
            "Redirect or forward: a rule with RequestRedirect has neither URLRewrite nor backends.",
        ),
        seen="HTTPRoute default/shop: Accepted=False IncompatibleFilters: HTTPRoute default/shop spec.rules[0].filters[1].type: "
        "Forbidden URLRewrite beside RequestRedirect",
    ),
    Page(
        word="InvalidBackendRef",
        means=f"The backend is there and broken: the Backend itself, or the BackendTLSPolicy of the Service. {_500}",
        fix=("The message has the mistake of the other object; put it right there.",),
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
        means="A reference is to a kind that cannot stand there, or that is not enabled (`extensionApis.enableBackend`, `enableXBackend`). "
        + _500,
        fix=(
            'The core group is written `""`, and kinds without their plural.',
            "Names outside the cluster: a Backend with `fqdn`.",
        ),
        example=route("rules: [{backendRefs: [{kind: Pod, name: shop-0, port: 80}]}]"),
    ),
    Page(
        word="NoMatchingListenerHostname",
        means="No hostname of the route is one that a listener of its parent has: it gets no request from it.",
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
        means="The Gateway or ListenerSet that the route names is not there, or has no listener of that `sectionName` or `port`, "
        "or is not one of ours.",
        fix=(
            "Correct `parentRefs`; the message lists what the parent has.",
            "A Gateway of a class of another controller is not ours: `kubectl get gatewayclass`.",
        ),
        example=route(_TO_SHOP, parent="{name: edge, sectionName: https}"),
    ),
    Page(
        word="NotAllowedByListeners",
        means="Listeners of the parent take no routes of this namespace or kind: `allowedRoutes` of each says which. By default it "
        "is the Gateway's own namespace. Or an older route of the other kind, HTTPRoute or GRPCRoute, has a host of a listener "
        "in common with it: a listener serves a host to one kind.",
        fix=(
            "Let the Gateway's owner allow it (`allowedRoutes.namespaces.from: All` or a selector), or move the route. Give the kinds "
            "hostnames of their own, or listeners.",
        ),
        example="apiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\nmetadata: {name: stock, namespace: warehouse}\n"
        "spec:\n  parentRefs: [{name: edge, namespace: default}]\n"
        "  rules: [{filters: [{type: RequestRedirect, requestRedirect: {scheme: https}}]}]\n",
    ),
    Page(
        word="PortNotFound",
        means=f"The backend has no such port. {_500}",
        fix=(
            "`port` is the Service's `port`, not the pods' `targetPort`. The message lists what there is.",
        ),
        example=route("rules: [{backendRefs: [{name: shop, port: 8080}]}]"),
    ),
    Page(
        word="PortNotSpecified",
        means=f"A `backendRef` to a Service has no `port`. {_500} A file, and an API server with the CRDs of the Gateway API, "
        "refuse it before.",
        fix=("Write the Service's port.",),
        seen="HTTPRoute default/shop spec.rules[0].backendRefs[0].port: PortNotSpecified Service default/shop needs a port (80)",
    ),
    Page(
        word="RefNotPermitted",
        means="A reference goes into another namespace, and no ReferenceGrant there allows it. To a backend: its share of the "
        "requests gets 500. To a certificate: the listener has none.",
        fix=(
            "Write a ReferenceGrant in the namespace that is referred to, by its owner, or move the object.",
        ),
        example=_ELSEWHERE
        + "---\n"
        + route("rules: [{backendRefs: [{name: stock, namespace: warehouse, port: 80}]}]"),
    ),
    Page(
        word="RouteRulesOverlap",
        means="A match equals one of another route at the same hostname, so only one of both gets the requests: the older route, "
        "then by name (Gateway API, HTTPRouteRule). A condition of the route and a warning of `check`; both routes are served.",
        fix=(
            "Take the match out of one of both; the message names the winner. `edgefast explain` shows it for a request.",
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
        means="The condition of a route of which rules, matches or hostnames never see a request. The route is served all the "
        "same. The problems in its message are [Shadowed](Shadowed.md).",
        fix=("As for Shadowed.",),
        example=route(
            "rules:\n"
            "- {name: all, backendRefs: [{name: shop, port: 80}]}\n"
            "- {name: again, matches: [{path: {value: /}}], backendRefs: [{name: shop, port: 80}]}\n"
        ),
    ),
    Page(
        word="Shadowed",
        means="A rule, a match or a hostname never sees a request: others take all of them before it ([how](../guides/explain.md)). A "
        "warning; nothing else is different.",
        fix=(
            "Remove it, or make it more specific than the winner that the message names.",
            "The longer path wins, then method, headers, query parameters, age of the route, order of rules.",
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
        means="An older policy of the kind has the target already. Of BackendTLSPolicies, which have Services and ports, it is in force "
        "alone; of SecurityPolicies and BackendTrafficPolicies it has what it says, and the younger one the rest.",
        fix=("Keep one of both, or give each a target of its own with `sectionName`.",),
        example=backend_tls(
            "validation: {hostname: a.example, wellKnownCACertificates: System}", "a"
        )
        + "---\n"
        + backend_tls("validation: {hostname: b.example, wellKnownCACertificates: System}", "b"),
    ),
    Page(
        word="InvalidCredentialRef",
        means="What a SecurityPolicy judges credentials by is missing or has a mistake: a Secret with keys of clients, or with names and "
        "passwords, a ConfigMap with a key set. Requests that the policy is for get 500: nobody can prove anything by it.",
        fix=(
            "Write the Secret. Of `apiKeyAuth` each name in it is a client id and its value that client's key; of `basicAuth` "
            "`.htpasswd` has a line `name:hash` for each user, as `htpasswd -B`, `-m` or `-s` writes it.",
            "Of `jwt` write the ConfigMap, with a JSON Web Key Set under `jwks`.",
        ),
        example=security("{kind: HTTPRoute, name: shop}", "basicAuth: {users: {name: users}}\n")
        + "---\n"
        + route("rules: [{backendRefs: [{name: shop, port: 80}]}]"),
    ),
    Page(
        word="Overridden",
        means="Something that a SecurityPolicy or BackendTrafficPolicy says holds nowhere: a policy above it with `mergeType: Override`, or "
        "policies on all that is below its target (the listeners of a Gateway, the rules of a route) have their way. The message names them.",
        fix=(
            "If that is meant, take it out of the policy; else change the policy that the message names.",
            "`edgefast explain` prints which policies hold for a request.",
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
        means="A policy is for something that is not there: a BackendTLSPolicy for a Service or a port of it, a SecurityPolicy or "
        "BackendTrafficPolicy for a Gateway, ListenerSet or route, for a listener or a named rule of one, a BackendTrafficPolicy for a Service or "
        "Backend, too. There it does nothing.",
        fix=(
            "Correct `targetRefs`; `sectionName` is the name of a port, not its number, of a listener, or of a rule "
            "(`spec.rules[].name`).",
        ),
        example="apiVersion: gateway.networking.k8s.io/v1\nkind: BackendTLSPolicy\nmetadata: {name: stock}\nspec:\n"
        '  targetRefs: [{group: "", kind: Service, name: stock}]\n'
        "  validation: {hostname: stock.example, wellKnownCACertificates: System}\n",
    ),
)
