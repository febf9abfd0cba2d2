"""ingress-nginx: Ingress and its annotations, and their equivalents in edgefast.

Pure data; source: networking.k8s.io/v1, and of ingress-nginx as ingress_access.py.
"""

from __future__ import annotations

from edgefast.api.migration.field_mapping import (
    Annotations,
    ForeignKind,
    Project,
    supported,
    unsupported,
)
from edgefast.api.migration.ingress_access import GUARDS
from edgefast.api.migration.ingress_other import OTHERS

INGRESS_NGINX = Project(
    title="ingress-nginx",
    groups=("networking.k8s.io", "extensions"),
    version="1.15 (dbb11b92dd)",
    about="""edgefast serves Ingresses with these annotations ([Ingress](../ingress.md)). `edgefast convert` writes these objects
for you ([migrate in an afternoon](ingress-nginx-afternoon.md)). The tables below list what replaces them in objects of the
Gateway API. edgefast does not apply annotations of a Gateway, HTTPRoute or GRPCRoute. In files, an annotation that decides access is an error, any other a warning
([PolicyIgnored](../../problems/PolicyIgnored.md)). In a cluster they are warnings of the object (Events, the console); statuses do not
contain them. edgefast never reads their values.

The ConfigMap of the controller has further settings that decide access, for all Ingresses:

- `block-cidrs`, `denylist-source-range`, `whitelist-source-range` and `global-auth-url`: use a policy of the Gateway (SecurityPolicy
  spec.authorization, SecurityPolicy spec.extAuth). With `mergeType: Override` routes cannot relax it.
- `block-user-agents` and `block-referers`: use rules of routes that match these headers by regular expressions and answer 403
  (HTTPRouteFilter spec.directResponse), or principal.headers of SecurityPolicy spec.authorization, which match exactly.
- `no-auth-locations` leaves `/.well-known/acme-challenge` open below `global-auth-url` by default. Use a policy for that rule
  (`mergeType: Replace`), unless the Gateway's policy is an `Override`.
- `use-forwarded-headers`, `use-proxy-protocol` and `proxy-real-ip-cidr` set the client address. Use EdgeProxy spec.clientAddress, which
  trusts no peer by default.

ingress-nginx enables three things by default that edgefast does not: redirects to HTTPS of each host with a certificate (`ssl-redirect`),
`Strict-Transport-Security` on its responses (`hsts`; use the filter ResponseHeaderModifier), and 413 for bodies of more than 1m
(`proxy-body-size`).""",
    kinds=(
        ForeignKind(
            "Ingress",
            {
                "ingressClassName": supported(
                    "HTTPRoute spec.parentRefs, which refers to a Gateway; its class is in "
                    "Gateway spec.gatewayClassName"
                ),
                "defaultBackend": supported(
                    "a rule without matches of an HTTPRoute without hostnames; a Service "
                    "without endpoints answers 503, too"
                ),
                "rules": supported("HTTPRoute spec.rules, of an HTTPRoute for each host"),
                "tls": supported(
                    "Gateway spec.listeners: one of HTTPS for each host, with hostname and certificateRefs"
                ),
            },
            inner={
                "rules[].host": supported(
                    "HTTPRoute spec.hostnames; *.example.com has any number of labels before it, not one"
                ),
                "rules[].http.paths[].path": supported("HTTPRoute spec.rules.matches.path (value)"),
                "rules[].http.paths[].pathType": supported(
                    "HTTPRoute spec.rules.matches.path (type): Exact, PathPrefix for Prefix, and RegularExpression for ImplementationSpecific, "
                    "which takes /foobar for /foo there: /foo.*; where an Ingress of the host has use-regex or rewrite-target, all are expressions"
                ),
                "rules[].http.paths[].backend.service": supported(
                    "HTTPRoute spec.rules.backendRefs; the port is a number, not a name"
                ),
                "rules[].http.paths[].backend.resource": unsupported(
                    "a backendRef refers to a Service, a Backend or an XBackend"
                ),
                "tls[].hosts": supported("Gateway spec.listeners.hostname"),
                "tls[].secretName": supported(
                    "Gateway spec.listeners.tls.certificateRefs, the same Secret; a "
                    "ReferenceGrant must allow one of another namespace"
                ),
            },
        ),
    ),
    annotations=Annotations("nginx.ingress.kubernetes.io", GUARDS, OTHERS),
)
