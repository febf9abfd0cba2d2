"""Policy targets: the table of each target kind of a snapshot, and which kinds a policy closes.

In: a snapshot, kinds of policies and of targets. Out: objects by name; targets that mean everything
of a namespace.
Must never: look into an object.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from edgefast.api.edge.policy_target import (
    BACKEND_TARGETS,
    TARGET_KINDS,
    TARGETS_OF,
    group_of_target,
)
from edgefast.api.kinds import Object
from edgefast.api.migration.target import Target as Named
from edgefast.api.model.meta import LabelSelector
from edgefast.api.snapshot import Key, Snapshot

__all__ = ["TARGETS", "every_target", "is_closed_by"]

TARGETS: dict[str, Callable[[Snapshot], Mapping[Key, Object]]] = {
    "Gateway": lambda snapshot: snapshot.gateways,
    "ListenerSet": lambda snapshot: snapshot.listener_sets,
    "HTTPRoute": lambda snapshot: snapshot.http_routes,
    "GRPCRoute": lambda snapshot: snapshot.grpc_routes,
    "TLSRoute": lambda snapshot: snapshot.tls_routes,
    "TCPRoute": lambda snapshot: snapshot.tcp_routes,
    "UDPRoute": lambda snapshot: snapshot.udp_routes,
    "Service": lambda snapshot: snapshot.services,
    "Backend": lambda snapshot: snapshot.backends,
    "XBackend": lambda snapshot: snapshot.x_backends,
}
assert tuple(TARGETS) == (*TARGET_KINDS, *BACKEND_TARGETS)


def is_closed_by(policy: str, kind: str) -> bool:
    """Tell whether a policy of an edgefast kind closes targets of this kind."""
    return kind in TARGETS_OF[policy]


def every_target(namespace: str) -> Iterator[Named]:
    """Yield all possible targets of policies of a namespace."""
    for kind in TARGETS:
        yield Named(("spec",), group_of_target(kind), kind, namespace, "", LabelSelector())
