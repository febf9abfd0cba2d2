"""Live: a cluster for `edgefast explain --live`, `diff --live` and `status`, through a kubeconfig (entry-point group `edgefast.live`).

In: `Where`. Out: a `Cluster` of edgefast.cli.live. It lives in one event loop from the first question to `close`, so that
connections and credentials last. Every way in which a cluster cannot be asked becomes a LiveError of one line.
Must never: write anything to the cluster, or start a watch.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Coroutine
from typing import Any, TypeVar

import msgspec

from controller.cli.installation import InstallationError, find_installation
from controller.cli.objects import Reader
from controller.cli.proxies import list_pods, read_pages
from controller.cli.watched import ClusterSource
from controller.kube.access import AccessError, open_access
from controller.kube.client import Kube
from controller.kube.errors import ApiError
from edgefast import ir
from edgefast.cli.counters import Page
from edgefast.cli.live import LiveError, Objects, Proxy, Where
from edgefast.resources.snapshot import Snapshot
from edgefast.translate.settings import settings_from

__all__ = ["LiveCluster", "open_cluster"]

T = TypeVar("T")


def open_cluster(where: Where) -> LiveCluster:
    """What the entry point names."""
    # What the controller's rooms would log is told in other words here.
    logging.getLogger("controller").addHandler(logging.NullHandler())
    return LiveCluster(where)


class LiveCluster:
    """See the module's text."""

    def __init__(self, where: Where) -> None:
        self._where = where
        self._runner = asyncio.Runner()
        self._kube: Kube | None = None
        self._server = ""
        self._reader: Reader | None = None

    def read_objects(self) -> Objects:
        """Read every object that counts, and the controller's configuration."""
        return self.run(self._read_objects())

    def complete(self, objects: Objects, snapshot: Snapshot) -> Objects:
        """Return `objects` with another snapshot and what that refers to besides."""
        return self.run(self._complete(objects, snapshot))

    def ask_proxies(self, fleet: ir.Infra) -> tuple[Proxy, ...]:
        """Ask the proxies of a fleet which table they serve."""
        return self.run(self._ask_proxies(fleet))

    def watch(self, namespace: str | None, *, everywhere: bool) -> ClusterSource:
        """Return what `edgefast status` looks at."""
        return ClusterSource(self, namespace, everywhere, self._where.admin)

    def close(self) -> None:
        """Close all connections."""
        if self._kube is not None:
            self._runner.run(self._kube.close())
        self._runner.close()

    # --- for ClusterSource ----------------------------------------------------------------------

    async def kube(self) -> Kube:
        """Return the connection to the API server, opened once."""
        if self._kube is None:
            access = await open_access(self._where.kubeconfig, self._where.context)
            self._kube = Kube(access)
            self._server = access.host
        return self._kube

    @property
    def server(self) -> str:
        """Address of the API server, once it was asked."""
        return self._server

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Do something in the event loop; LiveError when the cluster does not let us."""
        try:
            return self._runner.run(work)
        except BaseExceptionGroup as group:
            error = _first(group)
            if isinstance(error, ApiError):
                raise LiveError(self._say(error)) from None
            raise
        except ApiError as error:
            raise LiveError(self._say(error)) from None
        except (AccessError, InstallationError) as error:
            raise LiveError(str(error)) from None

    def _say(self, error: ApiError) -> str:
        return f"{self._server or 'the API server'}: {error}"

    # --- inside ---------------------------------------------------------------------------------

    async def _read_objects(self) -> Objects:
        kube = await self.kube()
        found = await find_installation(kube, self._where.controller, self._where.config)
        reader = self._reader = Reader(kube)
        snapshot = await reader.read(found.config, found.namespace)
        settings = msgspec.structs.replace(
            settings_from(
                found.config, standalone=False, namespace=found.namespace, now=int(time.time())
            ),
            bundle_version=reader.bundle_version,
        )
        objects = Objects(
            snapshot=snapshot,
            settings=settings,
            server=self._server,
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
        kube = await self.kube()
        selector = ",".join(f"{name}={value}" for name, value in fleet.selector)
        # Two installations may have fleets of one name in one namespace, one at a time.
        pods = await list_pods(kube, fleet.namespace, selector)
        pages = await read_pages(kube, pods)
        return tuple(_proxy(one.key, pages[one.key]) for one in pods)


def _proxy(name: str, page: Page | str) -> Proxy:
    if isinstance(page, str):
        return Proxy(name=name, why_not=page)
    return Proxy(name=name, table=page.table)


def _first(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """Return the first exception of a group that is none itself."""
    found = group.exceptions[0]
    return _first(found) if isinstance(found, BaseExceptionGroup) else found
