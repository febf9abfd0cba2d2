"""Roles and bindings of the controller for its deployment mode.

In: `Install`.
Out: objects. `provider.<cluster>.deploy` and `.watch` determine the location of each group of
`rbac.py`:

    watch      absent or NamespaceSelector     Namespaces
    WATCH      ClusterRole                     Role in each listed namespace and in the controller's
    X_BACKENDS as WATCH, with extensionApis.enableXBackend
    INGRESSES  as WATCH, with ingress.enabled; INGRESS_CLASSES then as CLUSTER
    INFRA      with deploy.type GatewayNamespace as WATCH, else a Role in the controller's namespace

Source: spec section 5 (permissions for Gateway Namespace mode).
Must never: bind any subject but the controller's own ServiceAccount.
"""

from __future__ import annotations

from controller.manifests.objects import Install, Manifest, metadata
from controller.manifests.rbac import (
    CLIENTS,
    CLUSTER,
    INFRA,
    INGRESS_CLASSES,
    INGRESSES,
    OWN,
    TOKENS,
    WATCH,
    X_BACKENDS,
    Group,
)

_API = "rbac.authorization.k8s.io"


def render_roles(install: Install) -> list[Manifest]:
    """Every Role, ClusterRole and binding of the controller."""
    release = install.release
    own = own_namespaces(install)
    spaces = watched(install)
    ingress = install.values.config.edge_gateway.ingress.enabled
    cluster = (CLUSTER, INGRESS_CLASSES) if ingress else (CLUSTER,)
    everywhere: dict[str, tuple[Group, ...]] = {"cluster": cluster}
    each: dict[str, tuple[Group, ...]] = {}
    config = install.values.config.edge_gateway
    watch: tuple[Group, ...] = (WATCH,)
    watch += (X_BACKENDS,) if config.extension_apis.enable_x_backend else ()
    watch += (INGRESSES,) if ingress else ()
    if spaces:
        each["watch"] = watch
    else:
        everywhere["watch"] = watch
    if own and spaces:
        each["infra-manager"] = (INFRA,)
        everywhere["token-reviewer"] = (TOKENS,)
    elif own:
        everywhere["cluster-infra-manager"] = (INFRA, TOKENS)
    found: list[Manifest] = []
    for what, groups in everywhere.items():
        found += _pair(install, "ClusterRole", release.role(what), "", groups)
    for space in spaces:
        for what, groups in each.items():
            found += _pair(install, "Role", release.role(what), space, groups)
    inside = (OWN,) if own else (OWN, CLIENTS, INFRA)
    return found + _pair(install, "Role", release.base, release.namespace, inside)


def own_namespaces(install: Install) -> bool:
    """Whether fleets are in the namespaces of their Gateways."""
    return install.values.config.edge_gateway.provider.cluster.deploy.type == "GatewayNamespace"


def watched(install: Install) -> list[str]:
    """Return the namespaces that have Roles, sorted; none when all are watched."""
    watch = install.values.config.edge_gateway.provider.cluster.watch
    if watch is None or watch.type != "Namespaces":
        return []
    return sorted({*watch.namespaces, install.release.namespace})


def _pair(
    install: Install, kind: str, name: str, namespace: str, groups: tuple[Group, ...]
) -> list[Manifest]:
    release = install.release
    subject = {
        "kind": "ServiceAccount",
        "name": release.base,
        "namespace": release.namespace,
    }
    rules = [one.rule(release.base) for group in groups for one in group.grants]
    return [
        {
            "apiVersion": f"{_API}/v1",
            "kind": kind,
            "metadata": metadata(release, name, namespace=namespace),
            "rules": rules,
        },
        {
            "apiVersion": f"{_API}/v1",
            "kind": f"{kind}Binding",
            "metadata": metadata(release, name, namespace=namespace),
            "roleRef": {"apiGroup": _API, "kind": kind, "name": name},
            "subjects": [subject],
        },
    ]
