"""Placement: the data that rendering needs besides the fleet: the controller's location and how proxies reach it.

In: the installation.
Out: one frozen Struct, derived names and paths, and the constants that several manifests share.
Source: spec sections 2, 5 (ports, authentication).
Must never: change between two starts of the same release, because every pod would be recreated.
"""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec

#: A Kubernetes object as plain values.
Manifest = dict[str, Any]

#: Field manager of all that is applied; with the label below it says what is ours.
MANAGER = "edge-gateway"
CONTROLLER_LABEL = "gateway.edge.io/controller"
MANAGED_LABEL = "app.kubernetes.io/managed-by"

EDGE = "edge"  # the proxy's container
SHUTDOWN = "shutdown-manager"
USER = 65532

XDS_PORT = 18000
METRICS_PORT = 19001
SHUTDOWN_PORT = 19002
READY_PORT = 19003

CA_FOLDER = "/etc/edge/ca"
CLIENT_FOLDER = "/etc/edge/client"
STATE_FOLDER = "/var/lib/edgefast"
TOKEN_FOLDER = "/var/run/secrets/token"
TOKEN_FILE = "sa-token"
TOKEN_SECONDS = 3600
CA_KEY = "ca.crt"

_LABEL_LIMIT = 63


class Placement(msgspec.Struct, frozen=True, kw_only=True):
    """An installation as its fleets see it."""

    image: str  # of the proxy
    ca: str  # PEM of all authorities that proxies trust for the controller
    namespace: str = "edge-gateway-system"  # the controller's
    name: str = "edge-gateway"  # its Service and base name, with the release's prefix
    domain: str = "cluster.local"
    gateway_namespace_mode: bool = False  # tokens instead of client certificates
    pull_policy: str = ""  # "": the cluster's default
    pull_secrets: tuple[str, ...] = ()

    @property
    def host(self) -> str:
        """Name of the controller's Service: what proxies dial, and the audience of their tokens."""
        return f"{self.name}.{self.namespace}.svc.{self.domain}"

    @property
    def identity(self) -> str:
        """Value of CONTROLLER_LABEL: tells the fleets of one installation from those of others."""
        plain = f"{self.namespace}.{self.name}"
        if len(plain) <= _LABEL_LIMIT:
            return plain
        return f"{plain[:54].rstrip('-.')}-{hashlib.sha256(plain.encode()).hexdigest()[:8]}"

    @property
    def selector(self) -> str:
        """Label selector of all objects of this installation's fleets."""
        return f"{MANAGED_LABEL}={MANAGER},{CONTROLLER_LABEL}={self.identity}"


def client_secret_name(fleet: str) -> str:
    """Return the name of the Secret with a fleet's client certificate."""
    return f"{fleet}-xds"
