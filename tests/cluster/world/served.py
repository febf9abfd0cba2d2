"""What every API server of the tests offers: an administrator's view, accounts, namespaces.

In: a control plane and its folder. Out: the base of `ApiServer` and `World`.
Must never: know what else runs.
"""

from __future__ import annotations

import secrets
from pathlib import Path

from cluster.world.accounts import Accounts
from cluster.world.api import Api
from cluster.world.control_plane import ControlPlane
from cluster.world.crds import install_own, wait_gateway_api
from cluster.world.seed import harvest, plant


class Served:
    """A control plane in use; `plane` starts, pauses and ends its programs."""

    def __init__(self, folder: Path, plane: ControlPlane) -> None:
        self.folder, self.plane = folder, plane
        self.accounts = Accounts(plane.admin, plane.site.pki)

    @property
    def admin(self) -> Api:
        """The API as an administrator sees it."""
        return self.plane.admin

    @property
    def kubeconfig(self) -> Path:
        """The administrator's kubeconfig."""
        return self.plane.kubeconfig

    @property
    def url(self) -> str:
        """The API server's URL, as this machine's programs reach it."""
        return self.plane.server.url

    def kubeconfig_for(self, account: str) -> Path:
        """Return a kubeconfig of ServiceAccount "namespace/name", which is made when it is not there."""
        return self.accounts.kubeconfig_for(account)

    def namespace(self, prefix: str = "test", **labels: str) -> str:
        """Make a namespace with a name of its own and return the name."""
        name = f"{prefix}-{secrets.token_hex(4)}"
        meta = {"name": name, "labels": labels}
        self.admin.create({"apiVersion": "v1", "kind": "Namespace", "metadata": meta})
        return name

    def start_plane(self, *, crds: bool) -> None:
        """Start the control plane, with the Gateway API (experimental channel) or with nothing; do not wait."""
        planted = crds and plant(self.folder)
        self.plane.begin()
        if crds and not planted:
            self.plane.wait_ready()
            harvest(self.plane)

    def finish_crds(self) -> None:
        """Install our own CRDs and wait until all kinds are served."""
        wait_gateway_api(self.admin)
        install_own(self.admin)
