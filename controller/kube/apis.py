"""Api: the paths of a kind on an API server.

In: group, version and kind, as in a manifest.
Out: paths. A table contains the kinds that the controller reads and writes; `Kube.resolve` asks the
server about others.
Source: Kubernetes API concepts, "Resource URIs".
Must never: do I/O.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

import msgspec

from edgefast.api.kinds import KINDS


class Api(msgspec.Struct, frozen=True):
    """One kind in one version; `group` "" is the core group."""

    group: str
    version: str
    kind: str
    plural: str
    namespaced: bool = True

    @property
    def api_version(self) -> str:
        """Return `apiVersion` of its manifests."""
        return f"{self.group}/{self.version}" if self.group else self.version

    def path(self, namespace: str = "", name: str = "", subresource: str = "") -> str:
        """Return the path of the collection, of one object, or of a part of one.

        Without a namespace: the collection of all namespaces. ValueError for a name without the namespace it needs.
        """
        parts = [_root(self.group, self.version)]
        if self.namespaced and namespace:
            parts += ["namespaces", _safe(namespace)]
        elif self.namespaced and name:
            raise ValueError(f"{self.kind} {name}: a namespace is needed")
        parts.append(self.plural)
        if name:
            parts.append(_safe(name))
        if subresource:
            parts.append(subresource)
        return "/".join(parts)

    def path_of(self, manifest: Mapping[str, Any], subresource: str = "") -> str:
        """Return the path of a manifest's object."""
        meta = manifest["metadata"]
        return self.path(meta.get("namespace", ""), meta["name"], subresource)


def group_path(group: str, version: str = "") -> str:
    """Return the path of the discovery document of a group, or of one of its versions."""
    return _root(group, version) if version else f"/apis/{_safe(group)}"


def split_api_version(api_version: str) -> tuple[str, str]:
    """Return (group, version) of an `apiVersion`."""
    group, _, version = api_version.rpartition("/")
    return group, version


def api_of(api_version: str, kind: str) -> Api:
    """Return the Api of a kind in the table; KeyError for others (see `Kube.resolve`)."""
    return APIS[api_version, kind]


def _root(group: str, version: str) -> str:
    return f"/apis/{_safe(group)}/{_safe(version)}" if group else f"/api/{_safe(version)}"


def _safe(part: str) -> str:
    """Quote a part of a path; names of RBAC objects may have colons."""
    return quote(part, safe=":")


def _rows() -> tuple[Api, ...]:
    rbac, apps = "rbac.authorization.k8s.io", "apps"
    operator = "monitoring.coreos.com"
    return (
        *(
            Api(info.group, version, info.kind, info.plural, info.namespaced)
            for info in KINDS.values()
            for version in info.versions
        ),
        Api("", "v1", "ServiceAccount", "serviceaccounts"),
        Api("", "v1", "Pod", "pods"),
        Api("", "v1", "Node", "nodes", namespaced=False),
        Api(apps, "v1", "Deployment", "deployments"),
        Api(apps, "v1", "DaemonSet", "daemonsets"),
        Api(apps, "v1", "ReplicaSet", "replicasets"),
        Api("autoscaling", "v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers"),
        Api("policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets"),
        Api("networking.k8s.io", "v1", "NetworkPolicy", "networkpolicies"),
        Api("batch", "v1", "Job", "jobs"),
        Api("events.k8s.io", "v1", "Event", "events"),
        Api("coordination.k8s.io", "v1", "Lease", "leases"),
        Api("authentication.k8s.io", "v1", "TokenReview", "tokenreviews", namespaced=False),
        Api(
            "apiextensions.k8s.io",
            "v1",
            "CustomResourceDefinition",
            "customresourcedefinitions",
            namespaced=False,
        ),
        Api(operator, "v1", "PrometheusRule", "prometheusrules"),
        Api(operator, "v1", "ServiceMonitor", "servicemonitors"),
        Api(operator, "v1", "PodMonitor", "podmonitors"),
        Api(rbac, "v1", "Role", "roles"),
        Api(rbac, "v1", "RoleBinding", "rolebindings"),
        Api(rbac, "v1", "ClusterRole", "clusterroles", namespaced=False),
        Api(rbac, "v1", "ClusterRoleBinding", "clusterrolebindings", namespaced=False),
    )


APIS: dict[tuple[str, str], Api] = {(one.api_version, one.kind): one for one in _rows()}
