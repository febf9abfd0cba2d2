"""A whole cluster on this machine: control plane, node, client, each in network namespaces of their own.

In: nothing; needs root. Out: a `World`: `admin` to talk to its API server, `client` to send requests from outside its
node, `image` to say what an image stands for. Several worlds can exist at one time.
Must never: leave a process, namespace or folder behind; what a killed run left, the next one clears.
"""

from __future__ import annotations

import sys
import time
from functools import cached_property
from pathlib import Path
from typing import Any

from cluster.tools.versions import CACHE
from cluster.world import addresses as at
from cluster.world import folder as folders
from cluster.world.box import build_box
from cluster.world.client import Client
from cluster.world.components import ComponentPrograms
from cluster.world.control_plane import ControlPlane, Site
from cluster.world.helm import Helm
from cluster.world.images import BIN, default_images
from cluster.world.network import Network
from cluster.world.node.settings import Image, Settings, read_images, write_images
from cluster.world.pki import make_pki
from cluster.world.served import Served
from cluster.world.workloads import Workloads

_UP_SECONDS = 120.0
#: Until kube-controller-manager has made the ServiceAccount of a new namespace, on a machine with much else to do.
_ACCOUNT_SECONDS = 120


class World(Served):
    """One cluster."""

    def __init__(self, folder: Path, network: Network, *, dies_with_us: bool = True) -> None:
        self.network = network
        site = Site(
            folder=folder,
            host=network.node_end,
            port=6443,
            etcd_port=2379,
            peer_port=2380,
            in_netns=network.node,
            bind="0.0.0.0",
            advertise=at.NODE_ADDRESS,
            dies_with_us=dies_with_us,
        )
        super().__init__(folder, ControlPlane(site))
        self.components = ComponentPrograms(site)

    @classmethod
    def make(cls, *, dies_with_us: bool = True) -> World:
        """Make the folder and the network of a new world; nothing runs yet."""
        folder = folders.make_folder("world")
        network = Network.make()
        (folder / "slot").write_text(str(network.slot))
        servers = [at.NODE_ADDRESS, at.API_SERVICE, network.node_end]
        make_pki(folder / "pki", servers, at.NODE, at.NODE_ADDRESS)
        return cls(folder, network, dies_with_us=dies_with_us)

    @classmethod
    def find(cls, folder: Path) -> World:
        """Return the world of a folder, which another process has started."""
        world = cls(folder, Network(int((folder / "slot").read_text())), dies_with_us=False)
        world.plane.find()
        world.components.find()
        return world

    def start(self, *, crds: bool = True) -> None:
        """Start everything, with all CRDs unless told not to, and wait until pods can be made."""
        settings = Settings(
            folder=str(self.folder),
            netns=self.network.node,
            server=f"https://{at.NODE_ADDRESS}:6443",
            pki=str(self.plane.site.pki),
            box=str(build_box()),
            readable=tuple(str(one) for one in (folders.PROJECT, Path(sys.base_prefix), CACHE)),
            path=str(BIN),
        )
        settings.write(self.folder / "agent.json")
        write_images(self.folder / "images.json", default_images())
        self.start_plane(crds=crds)
        # The agent waits for the API server as long as it takes; the others give up after some seconds.
        self.components.start_one("node-agent")
        self.plane.wait_ready()
        self.components.start_one("kube-controller-manager")
        self.components.start_one("kube-proxy")
        if crds:
            self.finish_crds()
        self._wait_up()

    @cached_property
    def client(self) -> Client:
        """A client outside the node."""
        return Client(self.network.client)

    @cached_property
    def workloads(self) -> Workloads:
        """Pods and what makes them."""
        return Workloads(self.admin, self.folder)

    @cached_property
    def helm(self) -> Helm:
        """Real helm against this world."""
        return Helm(self.kubeconfig, self.folder / "helm")

    def image(self, name: str, image: Image) -> None:
        """Say what an image stands for, from the next start of a container on."""
        images = read_images(self.folder / "images.json")
        write_images(self.folder / "images.json", images | {name: image})

    def namespace_for_pods(self, prefix: str = "test", **labels: str) -> str:
        """Make a namespace with its default ServiceAccount, without which no pod can be made; return the name."""
        name = self.namespace(prefix, **labels)
        path = f"/api/v1/namespaces/{name}/serviceaccounts"
        only = "metadata.name=default"
        deadline = time.monotonic() + _ACCOUNT_SECONDS
        while (left := int(deadline - time.monotonic())) > 0:
            found = self.admin.get(path, fieldSelector=only)
            if found["items"]:
                return name
            # From that moment on: without one, an API server over an etcd of 3.4 refuses after 3 s.
            seen = found["metadata"]["resourceVersion"]
            events = self.admin.watch(path, left, fieldSelector=only, resourceVersion=seen)
            if any(kind == "ADDED" for kind, _ in events):
                return name
        raise TimeoutError(f"{path}/default is not there after {_ACCOUNT_SECONDS} s")

    def _wait_up(self) -> None:
        path = "/api/v1/namespaces/default"
        self.admin.wait(f"{path}/serviceaccounts/default", bool, _UP_SECONDS)
        self.admin.wait(f"{path}/configmaps/kube-root-ca.crt", bool, _UP_SECONDS)
        self.admin.wait(f"/api/v1/nodes/{at.NODE}", _is_ready, _UP_SECONDS)
        deadline = time.monotonic() + _UP_SECONDS
        while not self.components.proxy_healthy():
            if time.monotonic() > deadline:
                raise RuntimeError(f"kube-proxy is not healthy:\n{self.components.proxy_log()}")
            time.sleep(0.05)

    def stop(self, *, keep_logs: bool = False) -> Path | None:
        """End everything; return where the logs are, if they were to be kept."""
        self.components.stop()
        self.plane.stop()
        self.network.remove()
        kept = folders.keep_logs(self.folder, "world") if keep_logs else None
        folders.remove_folder(self.folder)
        return kept


def _is_ready(node: Any) -> bool:
    conditions = (node or {}).get("status", {}).get("conditions") or []
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)
