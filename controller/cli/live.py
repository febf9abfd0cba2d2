"""LiveCluster: a cluster for `edgefast explain --live`, `diff --live` and `status`, through a kubeconfig (entry-point group
`edgefast.live`).

In: `Where`.
Out: a `Cluster` of edgefast.cli.live; all requests use one `Session`.
Must never: write anything to the cluster, or start a watch.
"""

from __future__ import annotations

import logging
import time

import msgspec

from controller.cli.cluster_status import ClusterSource
from controller.cli.installation import find_installation
from controller.cli.objects import Reader
from controller.cli.proxies import list_pods, read_pages
from controller.cli.session import Session
from edgefast import ir
from edgefast.api.snapshot import Snapshot
from edgefast.cli.counters import Page
from edgefast.cli.live import Objects, Proxy, Where
from edgefast.translate.settings import settings_from

__all__ = ["LiveCluster", "open_cluster"]


def open_cluster(where: Where) -> LiveCluster:
    """What the entry point names."""
    # The command reports errors itself, so the log of the controller's modules is off.
    logging.getLogger("controller").addHandler(logging.NullHandler())
    return LiveCluster(where)


class LiveCluster:
    """Reads a cluster for `edgefast explain --live`, `diff --live` and `status`."""

    def __init__(self, where: Where) -> None:
        self._where = where
        self._session = Session(where)
        self._reader: Reader | None = None

    def read_objects(self) -> Objects:
        """Read every object that counts, and the controller's configuration."""
        return self._session.run(self._read_objects())

    def complete(self, objects: Objects, snapshot: Snapshot) -> Objects:
        """Return `objects` with another snapshot and what that refers to besides."""
        return self._session.run(self._complete(objects, snapshot))

    def ask_proxies(self, fleet: ir.Infra) -> tuple[Proxy, ...]:
        """Ask the proxies of a fleet which table they serve."""
        return self._session.run(self._ask_proxies(fleet))

    def watch(self, namespace: str | None, *, everywhere: bool) -> ClusterSource:
        """Return what `edgefast status` looks at."""
        return ClusterSource(self._session, namespace, everywhere, self._where.admin)

    def close(self) -> None:
        """Close all connections."""
        self._session.close()

    async def _read_objects(self) -> Objects:
        kube = await self._session.kube()
        where = self._where
        found = await find_installation(
            kube, where.controller, where.config, optional=where.ingresses
        )
        config = found.config
        if where.ingresses:
            enabled = msgspec.structs.replace(config.ingress, enabled=True)
            config = msgspec.structs.replace(config, ingress=enabled)
        reader = self._reader = Reader(kube)
        snapshot = await reader.read(config, found.namespace)
        settings = msgspec.structs.replace(
            settings_from(
                config, standalone=False, namespace=found.namespace, now=int(time.time())
            ),
            bundle_version=reader.bundle_version,
            missing=reader.missing,
        )
        objects = Objects(
            snapshot=snapshot,
            settings=settings,
            server=self._session.server,
            config=found.source,
            namespace=kube.namespace,
            addresses=reader.addresses,
        )
        return await self._complete(objects, snapshot)

    async def _complete(self, objects: Objects, snapshot: Snapshot) -> Objects:
        assert self._reader is not None  # `objects` came from it
        whole = await self._reader.fetch(snapshot, objects.settings)
        return msgspec.structs.replace(
            objects, snapshot=whole, problems=self._reader.problems, unread=self._reader.unread
        )

    async def _ask_proxies(self, fleet: ir.Infra) -> tuple[Proxy, ...]:
        kube = await self._session.kube()
        selector = ",".join(f"{name}={value}" for name, value in fleet.selector)
        # Two installations may have fleets of one name in one namespace, one at a time.
        pods = await list_pods(kube, fleet.namespace, selector)
        pages = await read_pages(kube, pods)
        return tuple(_proxy(one.key, pages[one.key]) for one in pods)


def _proxy(name: str, page: Page | str) -> Proxy:
    if isinstance(page, str):
        return Proxy(name=name, why_not=page)
    return Proxy(name=name, table=page.table, stores=page.stores)
