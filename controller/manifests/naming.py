"""Names of all objects of an installation.

In: the release's name and namespace.
Out: names. The default release has those of spec section 2 (`edge-gateway` in
`edge-gateway-system`). Every other release adds a prefix, so that several releases can share one
cluster and one namespace. Names in other namespaces and cluster-wide names contain the release's
namespace too.
Must never: change; certificates, audiences and load balancers depend on them.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

DEFAULT_RELEASE: Final = "edge-gateway"
DEFAULT_NAMESPACE: Final = "edge-gateway-system"
CHART: Final = "gateway-chart"
CONFIG_KEY: Final = "edge-gateway.yaml"
#: The longest name, `<release>-edge-gateway-metrics-service`, is a DNS label: 63 characters.
RELEASE_LIMIT: Final = 32


class Release(Struct, frozen=True):
    """One installation. ValueError when the name is longer than RELEASE_LIMIT."""

    name: str = DEFAULT_RELEASE
    namespace: str = DEFAULT_NAMESPACE

    def __post_init__(self) -> None:
        if len(self.name) > RELEASE_LIMIT:
            raise ValueError(
                f"the name of the release, {self.name!r}, is longer than {RELEASE_LIMIT} characters"
            )

    @property
    def prefix(self) -> str:
        """Of names in the release's namespace."""
        return "" if self.name == DEFAULT_RELEASE else f"{self.name}-"

    @property
    def cluster_prefix(self) -> str:
        """Of names elsewhere."""
        if (self.name, self.namespace) == (DEFAULT_RELEASE, DEFAULT_NAMESPACE):
            return ""
        return f"{self.namespace}-{self.prefix}"

    @property
    def base(self) -> str:
        """Deployment, ServiceAccount, Service, Secret of the server certificate, Lease."""
        return f"{self.prefix}edge-gateway"

    @property
    def config(self) -> str:
        """ConfigMap of the configuration."""
        return f"{self.base}-config"

    @property
    def metrics(self) -> str:
        """Service of the metrics."""
        return f"{self.base}-metrics-service"

    @property
    def certgen(self) -> str:
        """Job of the first certificates, its ServiceAccount and its Role."""
        return f"{self.base}-certgen"

    @property
    def authority(self) -> str:
        """Secret of the certificate authority."""
        return f"{self.base}-ca"

    @property
    def tickets(self) -> str:
        """Secret of the keys of session tickets."""
        return f"{self.base}-tickets"

    def role(self, what: str) -> str:
        """ClusterRole, or Role in a watched namespace, and its binding: `gateway-chart-<what>`."""
        return f"{self.cluster_prefix}{CHART}-{what}"
