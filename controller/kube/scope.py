"""Scope: the watched namespaces, and the collections that a cache reflects.

In: the configuration's `watch` and the kinds that the server serves.
Out: targets. With `Namespaces`, every namespaced kind is watched in each listed namespace and in
the controller's own. With `NamespaceSelector`, and without either, all namespaces are watched:
labels change at run time, and the translation evaluates them (Settings.watches).
Source: spec section 1 (namespaced watching).
Must never: do I/O.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from controller.kube.apis import Api
from controller.kube.reflector import Target
from edgefast.api.config.edgegateway import EdgeGateway
from edgefast.api.ingress.ingress import NETWORKING_GROUP
from edgefast.api.kinds import KINDS

#: Watched as names only; the content is read of those that something refers to.
REFERENCED_KINDS = frozenset({"Secret", "ConfigMap", "ClusterTrustBundle"})
#: Kinds of groups that every API server has; the others come with CRDs.
BUILT_IN = tuple(
    Api(info.group, info.versions[0], info.kind, info.plural, info.namespaced)
    for info in KINDS.values()
    if info.group in ("", "discovery.k8s.io", NETWORKING_GROUP)
)


class Scope(msgspec.Struct, frozen=True):
    """`namespaces` () is all of them; `own` is the controller's namespace."""

    own: str
    namespaces: tuple[str, ...] = ()
    x_backends: bool = False  # extensionApis.enableXBackend; without it nobody may read them
    ingresses: bool = False  # ingress.enabled; the same for Ingresses and IngressClasses

    @staticmethod
    def of(config: EdgeGateway, own: str) -> Scope:
        """Derive the scope from the configuration."""
        watch = config.provider.cluster.watch
        listed = watch.namespaces if watch is not None and watch.type == "Namespaces" else ()
        spaces = tuple(sorted({*listed, own})) if listed else ()
        return Scope(own, spaces, config.extension_apis.enable_x_backend, config.ingress.enabled)

    def targets(self, apis: Iterable[Api]) -> frozenset[Target]:
        """Return everything that has to be reflected of these kinds."""
        return frozenset(
            Target(api, namespace, metadata_only=api.kind in REFERENCED_KINDS)
            for api in apis
            if self.x_backends or api.kind != "XBackend"
            if self.ingresses or api.group != NETWORKING_GROUP
            for namespace in (self.namespaces if api.namespaced and self.namespaces else (None,))
        )
