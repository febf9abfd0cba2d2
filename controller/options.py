"""Options: the command line options of one controller process.

In: the command line and the pod's environment.
Out: one frozen Struct. Settings that may change at run time are in the configuration file.
Must never: contain a secret.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from edgefast.httpd.address import EVERYWHERE, Address

__all__ = ["Options"]


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """See `edgefast-controller run --help`; an address of None is off."""

    config: Path | None = None
    kubeconfig: Path | None = None
    context: str | None = None
    namespace: str = "edge-gateway-system"
    name: str = "edge-gateway"  # of the Service, and the base of all names of the release
    cluster_domain: str = "cluster.local"
    certs: Path = Path("/certs")
    proxy_image: str = "edgefast/proxy:latest"
    proxy_pull_policy: str = ""
    proxy_pull_secrets: tuple[str, ...] = ()
    pod_name: str = "edge-gateway"
    pod_ip: str = "127.0.0.1"
    xds: Address | None = Address(EVERYWHERE, 18000)
    xds_token: Address | None = Address(EVERYWHERE, 18001)
    relay: Address | None = Address(EVERYWHERE, 18002)
    probes: Address | None = Address(EVERYWHERE, 8081)
    metrics: Address | None = Address(EVERYWHERE, 19001)
    admin: Address | None = None  # None: as the configuration says

    @property
    def config_map(self) -> str:
        """Name of the ConfigMap that the configuration file is mounted from, for Events."""
        return f"{self.name}-config"

    @property
    def identity(self) -> str:
        """Name this process among all replicas: "<pod>_<ip>", which is where the others reach it."""
        return f"{self.pod_name}_{self.pod_ip}"
