"""Wishes: what Gateways and EdgeProxies may not ask of the objects made for a fleet.

In: a Gateway's labels and its EdgeProxies. Out: what is granted, and a problem for each wish that is
not. Fleets of several people may share a namespace: their pods are told apart by labels, and in
Controller Namespace mode that namespace is the controller's, with its Secrets.
Must never: refuse a Gateway for a wish; it is served without.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import msgspec

from edgefast.problem import Problem
from edgefast.resources.edge.edgeproxy import EdgeProxy, EdgeProxySpec
from edgefast.resources.edge.edgeproxy_fleet import EnvVar
from edgefast.resources.gatewayapi.gateway import Gateway
from edgefast.resources.kinds import EDGE_GROUP, ref_of
from edgefast.resources.model.reference import GATEWAY_GROUP
from edgefast.translate.report.report import Report
from edgefast.translate.settings import Settings

_SELECTING = frozenset(f"app.kubernetes.io/{name}" for name in ("component", "managed-by", "name"))
_RESERVED = (f"{EDGE_GROUP}/", f"{GATEWAY_GROUP}/")
#: Sources of a variable that the pod's namespace holds.
_HELD = ("secretKeyRef", "configMapKeyRef")


def granted_labels(wished: Mapping[str, str]) -> dict[str, str]:
    """Return the labels that select nothing of ours, sorted.

    With `gateway.edge.io/owning-gatewayclass` on its pods, a Gateway would get another fleet's traffic.
    """
    return {name: wished[name] for name in sorted(wished) if not _is_reserved(name)}


def grant_spec(proxy: EdgeProxy, settings: Settings) -> EdgeProxySpec:
    """Return a Gateway's own EdgeProxy without variables that show what is not its namespace's.

    In Controller Namespace mode the pods run beside the controller's Secrets, its CA among them.
    """
    deployment = proxy.spec.deployment
    if deployment is None or not deployment.env or not _is_elsewhere(proxy, settings):
        return proxy.spec
    env = tuple(one for one in deployment.env if not _is_held(one))
    return msgspec.structs.replace(
        proxy.spec, deployment=msgspec.structs.replace(deployment, env=env)
    )


def check_wishes(proxy: EdgeProxy, settings: Settings, *, of_gateway: bool) -> tuple[Problem, ...]:
    """Return a problem for each wish of an EdgeProxy that is not granted."""
    if settings.standalone:
        return ()
    report, spec = Report(ref_of(proxy)), proxy.spec
    if spec.deployment is not None:
        _check_labels(spec.deployment.labels or {}, "spec.deployment.labels", report)
        for at, one in enumerate(spec.deployment.env or ()):
            if of_gateway and _is_held(one) and _is_elsewhere(proxy, settings):
                said = (
                    f"{one.name} would be read in namespace {settings.namespace}, where the proxies "
                    "of this Gateway run; it is left out"
                )
                report.refuse(f"spec.deployment.env[{at}].valueFrom", "Forbidden", said)
    if spec.service is not None:
        _check_labels(spec.service.labels or {}, "spec.service.labels", report)
    if spec.hpa is not None and spec.deployment and spec.deployment.kind == "DaemonSet":
        report.warn("spec.hpa", "Forbidden", "with kind DaemonSet; nothing is scaled")
    return report.problems


def check_wished_labels(gateway: Gateway, report: Report, settings: Settings) -> None:
    """Warn of infrastructure labels that are not granted."""
    wished = gateway.spec.infrastructure
    if wished is not None and not settings.standalone:
        _check_labels(wished.labels, "spec.infrastructure.labels", report)


def _check_labels(labels: Iterable[str], path: str, report: Report) -> None:
    for name in _reserved(labels):
        said = "is reserved: it tells fleets apart; it is left out"
        report.warn(f'{path}["{name}"]', "Forbidden", said)


def _reserved(labels: Iterable[str]) -> Iterator[str]:
    return (name for name in sorted(labels) if _is_reserved(name))


def _is_reserved(name: str) -> bool:
    return name in _SELECTING or name.startswith(_RESERVED)


def _is_elsewhere(proxy: EdgeProxy, settings: Settings) -> bool:
    own = settings.standalone or settings.gateway_namespace_mode
    return not own and proxy.metadata.namespace != settings.namespace


def _is_held(one: EnvVar) -> bool:
    return any(source in (one.value_from or {}) for source in _HELD)
