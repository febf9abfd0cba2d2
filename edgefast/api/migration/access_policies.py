"""Access policies: policies and annotations of other projects that decide access: which clients may send requests, and from where.

In: the group, kind and document of a foreign object; the annotations of an object that is served.
Out: the names of the fields or annotations that decide access. Their targets are closed
(translate/policy/foreign_access_policy.py), because edgefast does not apply them. One row of
PRODUCTS is one product. For a kind without a row, its name decides.
Source: the API references of the products, read for names alone.
Must never: read a value; it may be a secret.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from edgefast.api.kinds import KINDS
from edgefast.api.limits import MAX_SHOWN_NAME
from edgefast.api.migration.annotations import is_access_annotation

__all__ = [
    "PRODUCTS",
    "AccessPolicy",
    "Product",
    "find_access_policies",
    "find_access_policies_among",
]

#: Fields or annotations of one object that are named.
_MOST = 16
#: Fields of `spec` that set the targets of a policy.
_AIMS = frozenset(
    {"mergeType", "priority", "selector", "targetRef", "targetRefs", "targetSelectors", "type"}
)


class AccessPolicy(msgspec.Struct, frozen=True):
    """One kind. Without `only` and `but` it decides access with any field."""

    kind: str
    only: tuple[str, ...] = ()  # field paths that decide access: "spec.tls.clientValidation"
    but: tuple[str, ...] = ()  # fields of `spec` that do not; each other one does


class Product(msgspec.Struct, frozen=True):
    """One product: the API groups of its policies, and annotations of objects of the Gateway API."""

    title: str
    groups: tuple[str, ...] = ()
    access_policies: tuple[AccessPolicy, ...] = ()
    annotations: tuple[str, ...] = ()


#: Fields of kgateway's TrafficPolicy that do not decide access; the enterprise edition has them too.
_KGATEWAY = (
    "autoHostRewrite",
    "buffer",
    "compression",
    "cors",
    "headerModifiers",
    "rateLimit",
    "retry",
    "timeouts",
    "transformation",
    "urlRewrite",
)
PRODUCTS: tuple[Product, ...] = (
    Product(
        "Envoy Gateway",
        ("gateway.envoyproxy.io",),
        (
            AccessPolicy("SecurityPolicy", but=("cors",)),
            AccessPolicy("ClientTrafficPolicy", only=("spec.tls.clientValidation",)),
            AccessPolicy("EnvoyExtensionPolicy"),
            AccessPolicy("EnvoyPatchPolicy"),
        ),
    ),
    Product(
        "Istio",
        ("security.istio.io", "networking.istio.io", "extensions.istio.io"),
        (
            AccessPolicy("AuthorizationPolicy"),
            AccessPolicy("RequestAuthentication"),
            AccessPolicy("EnvoyFilter"),
            AccessPolicy("WasmPlugin"),
        ),
    ),
    Product(
        "Kong",
        ("configuration.konghq.com",),
        (AccessPolicy("KongClusterPlugin"), AccessPolicy("KongPlugin")),
        ("konghq.com/plugins", "plugins.konghq.com"),
    ),
    Product(
        "Traefik",
        ("traefik.io", "traefik.containo.us"),
        (AccessPolicy("TLSOption", only=("spec.clientAuth",)),),
        (
            "traefik.ingress.kubernetes.io/router.middlewares",
            "traefik.ingress.kubernetes.io/router.tls.options",
        ),
    ),
    Product(
        "NGINX Gateway Fabric",
        ("gateway.nginx.org",),
        (AccessPolicy("SnippetsPolicy"), AccessPolicy("WAFPolicy")),
    ),
    Product(
        "NGINX Ingress Controller",
        annotations=(
            "appprotect.f5.com/app-protect-policy",
            "nginx.com/jwt-key",
            "nginx.com/policies",
            "nginx.org/basic-auth-secret",
            "nginx.org/location-snippets",
            "nginx.org/policies",
            "nginx.org/server-snippets",
        ),
    ),
    Product(
        "kgateway",
        ("gateway.kgateway.dev",),
        (AccessPolicy("TrafficPolicy", but=_KGATEWAY),),
    ),
    Product("agentgateway", ("agentgateway.dev",), (AccessPolicy("AgentgatewayPolicy"),)),
    Product(
        "Gloo Gateway",
        ("gateway.solo.io",),
        (
            AccessPolicy("HttpListenerOption"),
            AccessPolicy("ListenerOption"),
            AccessPolicy("RouteOption"),
            AccessPolicy("VirtualHostOption"),
        ),
    ),
    Product(
        "Solo Enterprise for kgateway",
        ("enterprisekgateway.solo.io",),
        (
            AccessPolicy(
                "EnterpriseKgatewayTrafficPolicy",
                but=(*_KGATEWAY, "entRateLimit", "entTransformation"),
            ),
        ),
    ),
    Product(
        "Solo Enterprise for agentgateway",
        ("enterpriseagentgateway.solo.io",),
        (AccessPolicy("EnterpriseAgentgatewayPolicy"),),
    ),
    Product(
        "Kuadrant",
        ("kuadrant.io", "extensions.kuadrant.io"),
        (AccessPolicy("AuthPolicy"), AccessPolicy("OIDCPolicy")),
    ),
    Product("Consul", ("consul.hashicorp.com",), (AccessPolicy("GatewayPolicy"),)),
    Product(
        "AWS Gateway API Controller",
        ("application-networking.k8s.aws",),
        (AccessPolicy("IAMAuthPolicy"),),
    ),
    Product(
        "GKE Gateway",
        ("networking.gke.io",),
        (
            AccessPolicy(
                "GCPBackendPolicy", only=("spec.default.iap", "spec.default.securityPolicy")
            ),
        ),
        ("beta.cloud.google.com/backend-config", "cloud.google.com/backend-config"),
    ),
    Product(
        "Azure Application Gateway for Containers",
        ("alb.networking.azure.io",),
        (AccessPolicy("FrontendTLSPolicy"), AccessPolicy("WebApplicationFirewallPolicy")),
    ),
    Product(
        "ingress-nginx",
        annotations=(
            "nginx.ingress.kubernetes.io/ (the annotations on its page that decide access, and all that are not on its page)",
        ),
    ),
    Product("Apigee", ("apim.googleapis.com",), (AccessPolicy("ApigeeGatewayPolicy"),)),
    Product("ngrok", annotations=("k8s.ngrok.com/modules", "k8s.ngrok.com/traffic-policy")),
    Product(
        "HAProxy",
        annotations=(
            "haproxy-ingress.github.io/allowlist-source-range",
            "haproxy-ingress.github.io/auth-secret",
            "haproxy-ingress.github.io/auth-tls-secret",
            "haproxy-ingress.github.io/auth-url",
            "haproxy-ingress.github.io/denylist-source-range",
            "haproxy-ingress.github.io/oauth",
            "haproxy-ingress.github.io/whitelist-source-range",
            "haproxy.org/allow-list",
            "haproxy.org/auth-type",
            "haproxy.org/blacklist",
            "haproxy.org/client-ca",
            "haproxy.org/deny-list",
            "haproxy.org/whitelist",
        ),
    ),
    Product(
        "APISIX",
        annotations=(
            "k8s.apisix.apache.org/allowlist-source-range",
            "k8s.apisix.apache.org/auth-type",
            "k8s.apisix.apache.org/auth-uri",
            "k8s.apisix.apache.org/blocklist-source-range",
            "k8s.apisix.apache.org/plugin-config-name",
        ),
    ),
)
_GUARDS: dict[tuple[str, str], AccessPolicy] = {
    (group, one.kind): one
    for product in PRODUCTS
    for group in product.groups
    for one in product.access_policies
}
_ANNOTATIONS = frozenset(name for one in PRODUCTS for name in one.annotations)
#: Words for access in the name of a kind without a row, of any group, if it names targets.
_WORDS = re.compile(
    "Access|Acl|ACL|Allowlist|AllowList|ApiKey|APIKey|Auth|Denylist|DenyList|Firewall|JWT|Jwt|MTLS|Oidc|OIDC|RBAC|Rbac|Security|WAF|Waf"
)


def find_access_policies(
    group: str, kind: str, raw: Mapping[str, Any], *, aimed: bool
) -> tuple[str, ...]:
    """Return the fields of a foreign document that decide access; `aimed`: it names targets."""
    guard = _GUARDS.get((group, kind))
    if guard is None:
        named = aimed and (group, kind) not in KINDS
        return (kind[:MAX_SHOWN_NAME],) if named and _WORDS.search(kind) else ()
    if guard.only:
        return tuple(one for one in guard.only if _is_set(raw, one.split(".")))
    spec = raw.get("spec")
    fields = (
        [one for one, value in spec.items() if isinstance(one, str) and value is not None]
        if isinstance(spec, dict)
        else []
    )
    found = sorted(
        one[:MAX_SHOWN_NAME] for one in fields if one not in _AIMS and one not in guard.but
    )
    # Istio's AuthorizationPolicy without a field denies everything.
    return tuple(found[:_MOST]) or (() if guard.but else (kind,))


def find_access_policies_among(annotations: Iterable[str]) -> tuple[str, ...]:
    """Return the names of annotations that decide access, some of very many."""
    found = sorted(one for one in annotations if one in _ANNOTATIONS or is_access_annotation(one))
    return tuple(one[:MAX_SHOWN_NAME] for one in found[:_MOST])


def _is_set(value: object, path: list[str]) -> bool:
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value is not None
