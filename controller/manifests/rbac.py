"""RBAC: the controller's permissions in a cluster, rule by rule, each with its reason.

In: nothing.
Out: `Grant`s in groups. They are the source of `templates/_rules.tpl`, the roles of `render.py` and
the table in docs/reference/chart.md. INFRA and TOKENS are the table of spec section 5; additional
verbs (list and watch) have a reason.
Must never: grant more than the controller's calls need, or `*`.
"""

from __future__ import annotations

from typing import Any, Final

from msgspec import Struct

from edgefast.api.kinds import EDGE_GROUP, KINDS

_GATEWAY: Final = "gateway.networking.k8s.io"
_EXPERIMENTAL: Final = "gateway.networking.x-k8s.io"
#: API groups that CRDs define.
_CRDS: Final = (_GATEWAY, EDGE_GROUP, _EXPERIMENTAL)
#: Routes of all kinds.
_ROUTES: Final = ("httproutes", "grpcroutes", "tlsroutes", "tcproutes", "udproutes")
#: Policies of our own.
_POLICIES: Final = ("securitypolicies", "backendtrafficpolicies")
_READ: Final = ("get", "list", "watch")
_OWN: Final = ("create", "get", "delete", "deletecollection", "patch")
_FOLLOW: Final = ("list", "watch")


class Grant(Struct, frozen=True):
    """One rule of a Role: groups x resources x verbs, and why it is needed."""

    groups: tuple[str, ...]
    resources: tuple[str, ...]
    verbs: tuple[str, ...]
    why: str
    names: tuple[str, ...] = ()  # resourceNames
    own_names: tuple[str, ...] = ()  # resourceNames, as suffixes to the release's base name

    def rule(self, base: str) -> dict[str, Any]:
        """Return the rule as in rbac.authorization.k8s.io/v1; `base` is `Release.base`."""
        rule: dict[str, Any] = {"apiGroups": list(self.groups), "resources": list(self.resources)}
        names = [*self.names, *(f"{base}{suffix}" for suffix in self.own_names)]
        if names:
            rule["resourceNames"] = names
        return {**rule, "verbs": list(self.verbs)}


class Group(Struct, frozen=True):
    """Grants that stand in one role."""

    name: str
    where: str
    grants: tuple[Grant, ...]


CLUSTER: Final = Group(
    "cluster",
    "cluster-wide, in every mode",
    (
        Grant(
            (_GATEWAY,),
            ("gatewayclasses",),
            _READ,
            "GatewayClasses have no namespace; get reads one again after a status conflict.",
        ),
        Grant((_GATEWAY,), ("gatewayclasses/status",), ("patch",), "Their conditions."),
        Grant(
            ("",),
            ("namespaces",),
            _FOLLOW,
            "Labels: allowedRoutes.namespaces.selector, and watch.type NamespaceSelector.",
        ),
        Grant(
            ("",),
            ("nodes",),
            _FOLLOW,
            "Addresses of fleets with a Service of type NodePort; watched only if one exists.",
        ),
        Grant(
            ("apiextensions.k8s.io",),
            ("customresourcedefinitions",),
            ("get",),
            "Find the installed version of the Gateway API, and whether an object or its CRD was deleted.",
            names=tuple(
                sorted(f"{one.plural}.{one.group}" for one in KINDS.values() if one.group in _CRDS)
            ),
        ),
        Grant(
            ("certificates.k8s.io",),
            ("clustertrustbundles",),
            _READ,
            "CA certificates of the cluster. Only metadata is listed and watched; get is "
            "called only for referenced ones.",
        ),
        Grant(
            ("events.k8s.io",),
            ("events",),
            ("create",),
            "Events in the namespace of their object; Events of GatewayClasses are in "
            "namespace default.",
        ),
    ),
)

WATCH: Final = Group(
    "watch",
    "cluster-wide; with watch.type Namespaces in each listed namespace and in the controller's",
    (
        Grant(
            (_GATEWAY,),
            ("gateways", *_ROUTES, "listenersets", "backendtlspolicies"),
            _READ,
            "Objects that are translated; get reads one again after a status conflict.",
        ),
        Grant((_GATEWAY,), ("referencegrants",), _FOLLOW, "References between namespaces."),
        Grant(
            (_GATEWAY,),
            (
                "gateways/status",
                *(f"{one}/status" for one in _ROUTES),
                "listenersets/status",
                "backendtlspolicies/status",
            ),
            ("patch",),
            "Conditions, addresses and attached routes; nothing else of users' objects is written.",
        ),
        Grant(
            ("gateway.edge.io",),
            ("edgeproxies", "ratelimitfilters", "backends", "httproutefilters"),
            _FOLLOW,
            "Kinds of edgefast.",
        ),
        Grant(
            ("gateway.edge.io",),
            _POLICIES,
            _READ,
            "Policies of edgefast; get reads one again after a status conflict.",
        ),
        Grant(
            ("gateway.edge.io",),
            tuple(f"{one}/status" for one in _POLICIES),
            ("patch",),
            "Their conditions.",
        ),
        Grant(
            (_EXPERIMENTAL,),
            ("xbackendtrafficpolicies",),
            _READ,
            "Retry budgets, if the experimental CRD is installed; get as above.",
        ),
        Grant(
            (_EXPERIMENTAL,),
            ("xbackendtrafficpolicies/status",),
            ("patch",),
            "Their conditions.",
        ),
        Grant(("",), ("services",), _FOLLOW, "Backends, and the addresses of fleets."),
        Grant(
            ("discovery.k8s.io",),
            ("endpointslices",),
            _FOLLOW,
            "Endpoints of backends, and which proxies of a fleet are ready.",
        ),
        Grant(
            ("",),
            ("secrets", "configmaps"),
            _READ,
            "Certificates and authorities. Only metadata is listed and watched; get is called "
            "only for referenced ones.",
        ),
    ),
)

X_BACKENDS: Final = Group(
    "xbackends",
    "same scope as watch, only with extensionApis.enableXBackend",
    (
        Grant(
            (_EXPERIMENTAL,),
            ("xbackends",),
            _READ,
            "Backends of the experimental channel; get reads one again after a status conflict.",
        ),
        Grant((_EXPERIMENTAL,), ("xbackends/status",), ("patch",), "Their conditions."),
        Grant(
            ("",),
            ("pods",),
            _FOLLOW,
            "Endpoints of XBackends of type EndpointSelector; only Pods with the selected "
            "labels are listed and watched.",
        ),
    ),
)

INGRESSES: Final = Group(
    "ingresses",
    "same scope as watch, only with ingress.enabled",
    (
        Grant(
            ("networking.k8s.io",),
            ("ingresses",),
            _READ,
            "Ingresses that are translated; get reads one again after a status conflict.",
        ),
        Grant(
            ("networking.k8s.io",),
            ("ingresses/status",),
            ("patch",),
            "The addresses of the Service that serves them.",
        ),
    ),
)

INGRESS_CLASSES: Final = Group(
    "ingressclasses",
    "cluster-wide, only with ingress.enabled",
    (
        Grant(
            ("networking.k8s.io",),
            ("ingressclasses",),
            _FOLLOW,
            "Which Ingresses the controller serves; IngressClasses have no namespace.",
        ),
    ),
)

INFRA: Final = Group(
    "infra",
    "the controller's namespace; with deploy.type GatewayNamespace cluster-wide (ClusterRole "
    "gateway-chart-cluster-infra-manager), or in each listed namespace with watch.type Namespaces",
    (
        Grant(
            ("",),
            ("serviceaccounts", "services", "configmaps"),
            _OWN,
            "Fleets: identity, address, authority (spec section 5).",
        ),
        Grant(("apps",), ("deployments", "daemonsets"), _OWN, "Fleets: proxies (spec section 5)."),
        Grant(
            ("autoscaling", "policy"),
            ("horizontalpodautoscalers", "poddisruptionbudgets"),
            _OWN,
            "Fleets: scaling and disruption (spec section 5).",
        ),
        Grant(
            ("",),
            ("serviceaccounts",),
            _FOLLOW,
            "Finds objects that other clients changed, to repair them, and objects without a "
            "Gateway. Services, "
            "ConfigMaps and EndpointSlices of fleets are read with the objects that are watched.",
        ),
        Grant(("apps",), ("deployments", "daemonsets"), _FOLLOW, "The same."),
        Grant(
            ("autoscaling", "policy"),
            ("horizontalpodautoscalers", "poddisruptionbudgets"),
            _FOLLOW,
            "The same.",
        ),
    ),
)

TOKENS: Final = Group(
    "tokens",
    "cluster-wide, with deploy.type GatewayNamespace",
    (
        Grant(
            ("authentication.k8s.io",),
            ("tokenreviews",),
            ("create",),
            "Checks the token that a proxy shows (spec section 5).",
        ),
    ),
)

OWN: Final = Group(
    "own",
    "the controller's namespace",
    (
        Grant(
            ("coordination.k8s.io",),
            ("leases",),
            ("get", "update"),
            "Leader election: one replica writes statuses and fleets.",
            own_names=("-leader",),
        ),
        Grant(
            ("coordination.k8s.io",),
            ("leases",),
            ("create",),
            "The first leader creates the Lease; create cannot be limited by name.",
        ),
        Grant(
            ("",),
            ("secrets",),
            ("get", "update"),
            "Renews the server certificate and the authority, rotates the keys of session tickets.",
            own_names=("", "-ca", "-tickets"),
        ),
        Grant(
            ("",),
            ("secrets",),
            ("create",),
            "Creates a deleted server certificate again, and the keys of session tickets; "
            "create cannot be limited by name.",
        ),
    ),
)

CLIENTS: Final = Group(
    "clients",
    "the controller's namespace, without deploy.type GatewayNamespace",
    (
        Grant(
            ("",),
            ("secrets",),
            ("create", "get", "list", "watch", "delete", "patch"),
            "A client certificate for each fleet (mutual TLS): applied, repaired, removed with it.",
        ),
    ),
)

CERTGEN: Final = Group(
    "certgen",
    "the controller's namespace, ServiceAccount of the certgen Job",
    (
        Grant(("",), ("secrets",), ("create",), "The first certificates."),
        Grant(
            ("",),
            ("secrets",),
            ("get", "update"),
            "Keeps existing ones, or replaces them with certgen.overwrite.",
            own_names=("", "-ca"),
        ),
    ),
)

GROUPS: Final = (
    CLUSTER,
    WATCH,
    X_BACKENDS,
    INGRESSES,
    INGRESS_CLASSES,
    INFRA,
    TOKENS,
    OWN,
    CLIENTS,
    CERTGEN,
)
