"""A real API server for tests that need no pods: etcd and kube-apiserver on loopback, with all our CRDs.

In: nothing. Out: an `ApiServer`: `admin` (may do everything), `kubeconfig`, `accounts` for tokens and kubeconfigs of
ServiceAccounts. RBAC is on. No controller runs: no default ServiceAccounts, no EndpointSlices but those a test makes,
and a deleted namespace stays Terminating.
Must never: need root, a fixed port or a network namespace.
"""

from __future__ import annotations

from cluster.world import folder as folders
from cluster.world.control_plane import ControlPlane, Site
from cluster.world.pki import make_pki
from cluster.world.served import Served
from wire.harness.ports import free_port


class ApiServer(Served):
    """etcd and kube-apiserver with free ports and a folder of their own."""

    def __init__(self, *options: str) -> None:
        """`options` are further flags of kube-apiserver."""
        folder = folders.make_folder("apiserver")
        # Reserved: the API server comes back to its port after tests that end it.
        port, etcd_port, peer_port = (free_port() for _ in range(3))
        site = Site(
            folder=folder, host="127.0.0.1", port=port, etcd_port=etcd_port, peer_port=peer_port
        )
        make_pki(site.pki, [], "none", "127.0.0.1")
        super().__init__(folder, ControlPlane(site, options))

    def start(self, *, crds: bool = True) -> None:
        """Start, with all CRDs unless told not to."""
        self.start_plane(crds=crds)
        self.plane.wait_ready()
        if crds:
            self.finish_crds()

    def stop(self, *, keep_logs: bool = False) -> None:
        """End both programs and remove the folder; logs are kept under build/cluster if asked for."""
        self.plane.stop()
        if keep_logs:
            folders.keep_logs(self.folder, "apiserver")
        folders.remove_folder(self.folder)
