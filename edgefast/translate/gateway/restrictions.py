"""Restrictions: what Gateways and EdgeProxies may not set on the objects made for a fleet.

In: a Gateway's labels and annotations, and its EdgeProxies. Out: the allowed values, and a problem
for each refused one. Fleets of several teams may share a namespace, with pods that differ by
labels. In Controller Namespace mode that namespace is the controller's, with its Secrets. There
only namespaces of EdgeGateway `deploy.codeNamespaces`, a list of the administrator, may decide
which code runs in the pods. This concerns CODE_FIELDS, and labels and annotations that injectors or
container runtimes may read. Other namespaces may set annotations of POD_DOMAINS, of domains that
the administrator lists, and annotations without a domain. They may set labels only of domains that
the administrator lists: a Service or NetworkPolicy of others may select pods by any other label.
Other labels and annotations of a Gateway are set on its Service only: no code runs there, and
nothing selects it. An administrator chooses the EdgeProxy of a GatewayClass, so it may set all.
Must never: refuse a Gateway for a refused value; it is served without the value.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from edgefast.api.edge.edgeproxy import EdgeProxy, EdgeProxySpec
from edgefast.api.edge.edgeproxy_fleet import EnvVar, FleetDeployment
from edgefast.api.gateway.gateway import Gateway
from edgefast.api.kinds import EDGE_GROUP, ref_of
from edgefast.api.model.reference import GATEWAY_GROUP
from edgefast.diagnostics.problem import Problem
from edgefast.translate.report.report import Report
from edgefast.translate.settings import Settings

_SELECTING = frozenset(f"app.kubernetes.io/{name}" for name in ("component", "managed-by", "name"))
_RESERVED = (f"{EDGE_GROUP}/", f"{GATEWAY_GROUP}/")
#: Sources of a variable that the pod's namespace holds.
_HELD = ("secretKeyRef", "configMapKeyRef")
#: Fields of `spec.deployment` that decide which code runs in a pod, by their names in the Struct.
CODE_FIELDS = ("image", "env")
#: The others: sizes, places and names. A test holds both lists against the Struct; labels and annotations are checked by name.
PLAIN_FIELDS = frozenset(
    {
        "kind",
        "replicas",
        "resources",
        "annotations",
        "labels",
        "affinity",
        "tolerations",
        "node_selector",
        "topology_spread_constraints",
        "priority_class_name",
    }
)
#: Domains of annotations that no injector and no container runtime reads. A domain that is not listed may be read by
#: an unknown injector: EdgeGateway `deploy.podMetadataDomains` adds domains.
POD_DOMAINS = (
    "app.kubernetes.io",
    "external-dns.alpha.kubernetes.io",
    "helm.sh",
    "prometheus.io",
    "service.beta.kubernetes.io",
)
#: Names without a domain that give a pod credentials. Kubernetes leaves such names to users; this product takes one.
_BARE = frozenset({"aadpodidbinding"})


def may_run_code(namespace: str, settings: Settings) -> bool:
    """Tell whether objects of a namespace decide which code runs in the pods of its Gateways."""
    own = settings.standalone or settings.gateway_namespace_mode
    return own or namespace == settings.namespace or namespace in settings.code_namespaces


def label_goes_to_pods(name: str, settings: Settings) -> bool:
    """Tell whether the administrator lists the domain of a label."""
    domain, slash, _ = name.partition("/")
    return bool(slash) and domain in settings.pod_metadata_domains


def goes_to_pods(name: str, settings: Settings) -> bool:
    """Tell whether an annotation is of a kind that injects nothing into a pod.

    Runtimes read names without a slash too (`io.katacontainers.config.hypervisor.path`, `io.kubernetes.cri-o.Devices`): a name
    with a dot has a domain.
    """
    domain, slash, _ = name.partition("/")
    if not slash:
        return "." not in name and name not in _BARE
    return domain in POD_DOMAINS or domain in settings.pod_metadata_domains


def find_withheld(
    labels: Iterable[str], annotations: Iterable[str], namespace: str, settings: Settings
) -> tuple[str, ...]:
    """Return the labels and annotations that a namespace cannot set on pods, sorted. An annotation with the name of such a label is one."""
    if may_run_code(namespace, settings):
        return ()
    withheld = {one for one in labels if not label_goes_to_pods(one, settings)}
    withheld.update(one for one in annotations if not goes_to_pods(one, settings))
    return tuple(sorted(withheld))


def granted_labels(wished: Mapping[str, str]) -> dict[str, str]:
    """Return the labels that select nothing of ours, sorted.

    With `gateway.edge.io/owning-gatewayclass` on its pods, a Gateway would get another fleet's traffic.
    """
    return {name: wished[name] for name in sorted(wished) if not _is_reserved(name)}


def grant_spec(proxy: EdgeProxy, settings: Settings) -> EdgeProxySpec:
    """Return a Gateway's own EdgeProxy without fields that run code, and without variables of Secrets of other namespaces.

    In Controller Namespace mode the pods run beside the controller's Secrets, its CA among them.
    """
    deployment = proxy.spec.deployment
    if deployment is None or not _is_elsewhere(proxy, settings):
        return proxy.spec
    granted: dict[str, Any] = {}
    if may_run_code(proxy.metadata.namespace, settings):
        granted["env"] = tuple(one for one in deployment.env or () if not _is_held(one)) or None
    else:
        granted = dict.fromkeys(CODE_FIELDS)
        for field, goes in (("labels", label_goes_to_pods), ("annotations", goes_to_pods)):
            if wished := getattr(deployment, field):
                granted[field] = {
                    name: text for name, text in wished.items() if goes(name, settings)
                }
    return msgspec.structs.replace(
        proxy.spec, deployment=msgspec.structs.replace(deployment, **granted)
    )


def check_restrictions(
    proxy: EdgeProxy, settings: Settings, *, of_gateway: bool
) -> tuple[Problem, ...]:
    """Return a problem for each wish of an EdgeProxy that is not granted."""
    if settings.standalone:
        return ()
    report, spec = Report(ref_of(proxy)), proxy.spec
    if spec.deployment is not None:
        _check_labels(spec.deployment.labels or {}, "spec.deployment.labels", report)
        code = not of_gateway or may_run_code(proxy.metadata.namespace, settings)
        if not code:
            _check_code(spec.deployment, proxy.metadata.namespace, report, settings)
        for at, one in enumerate((spec.deployment.env or ()) if code and of_gateway else ()):
            if _is_held(one) and _is_elsewhere(proxy, settings):
                message = f"{one.name} would be read in namespace {settings.namespace}, where the proxies of this Gateway run; it is ignored"
                report.refuse(f"spec.deployment.env[{at}].valueFrom", "Forbidden", message)
    if spec.service is not None:
        _check_labels(spec.service.labels or {}, "spec.service.labels", report)
    if spec.hpa is not None and spec.deployment and spec.deployment.kind == "DaemonSet":
        report.warn("spec.hpa", "Forbidden", "with kind DaemonSet; it has no effect")
    return report.problems


def check_requested_labels(gateway: Gateway, report: Report, settings: Settings) -> None:
    """Warn of infrastructure labels that are not granted."""
    wished = gateway.spec.infrastructure
    if wished is not None and not settings.standalone:
        _check_labels(wished.labels, "spec.infrastructure.labels", report)
        namespace, effect = gateway.metadata.namespace, "it is set on the Service only"
        path, names = "spec.infrastructure", (granted_labels(wished.labels), wished.annotations)
        _check_pod_names(*names, path, namespace, effect, report, settings)


def _check_code(
    deployment: FleetDeployment, namespace: str, report: Report, settings: Settings
) -> None:
    for field in CODE_FIELDS:
        if getattr(deployment, field) is not None:
            message = f"decides which code runs in the controller's namespace, which namespace {namespace} is not allowed to do; it is ignored; an administrator can allow it (EdgeGateway provider.kubernetes.deploy.codeNamespaces)"
            report.refuse(f"spec.deployment.{field}", "Forbidden", message)
    names = (granted_labels(deployment.labels or {}), deployment.annotations or {})
    _check_pod_names(*names, "spec.deployment", namespace, "it is ignored", report, settings)


def _check_pod_names(
    labels: Iterable[str],
    annotations: Iterable[str],
    path: str,
    namespace: str,
    effect: str,
    report: Report,
    settings: Settings,
) -> None:
    allow = (
        "an administrator can allow its domain (EdgeGateway provider.kubernetes.deploy.podMetadataDomains) or the namespace "
        "(codeNamespaces)"
    )
    for name in find_withheld(labels, (), namespace, settings):
        message = (
            "a Service or NetworkPolicy of others may select pods of the controller's namespace by it, where namespace "
            f"{namespace} may set labels of listed domains only; {effect}; {allow}"
        )
        report.warn(f'{path}.labels["{name}"]', "Forbidden", message)
    for name in find_withheld((), annotations, namespace, settings):
        message = (
            "an injector or container runtime may read it in pods of the controller's namespace, which namespace "
            f"{namespace} may not change (allowed: names without a domain, and those of {', '.join(POD_DOMAINS)}); {effect}; "
            + allow
        )
        report.warn(f'{path}.annotations["{name}"]', "Forbidden", message)


def _check_labels(labels: Iterable[str], path: str, report: Report) -> None:
    for name in _reserved(labels):
        message = "is reserved because it identifies fleets; it is ignored"
        report.warn(f'{path}["{name}"]', "Forbidden", message)


def _reserved(labels: Iterable[str]) -> Iterator[str]:
    return (name for name in sorted(labels) if _is_reserved(name))


def _is_reserved(name: str) -> bool:
    return name in _SELECTING or name.startswith(_RESERVED)


def _is_elsewhere(proxy: EdgeProxy, settings: Settings) -> bool:
    own = settings.standalone or settings.gateway_namespace_mode
    return not own and proxy.metadata.namespace != settings.namespace


def _is_held(one: EnvVar) -> bool:
    return any(source in (one.value_from or {}) for source in _HELD)
