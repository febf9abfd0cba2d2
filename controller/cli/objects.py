"""Objects: all objects that a controller would translate, read once.

In: an API server, a configuration.
Out: a Snapshot from the same store, with the same kinds and namespaces, as in the controller's
cache; the referenced Secrets, ConfigMaps and ClusterTrustBundles. Valid placeholders replace those
that the credential may not read, and are listed, so that routing can still be explained. Any other
unreadable object raises ApiError, because the answer would not describe the cluster.
Must never: list Secrets, write, or keep key material longer than the process lives.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import msgspec

from controller.cli.placeholder import make_placeholder
from controller.kube.apis import APIS, Api
from controller.kube.client import Kube
from controller.kube.depth import decode_json
from controller.kube.discovery import Discovery, Served
from controller.kube.errors import ApiError
from controller.kube.fetch import Reference
from controller.kube.ingress_references import IngressReferences
from controller.kube.pods import Selection, Table, list_pods
from controller.kube.references import referenced
from controller.kube.reflector import Item, Target
from controller.kube.scope import BUILT_IN, Scope
from controller.kube.store import Source, Store
from controller.kube.throttle import RequestRate
from edgefast.api.config.edgegateway import EdgeGateway
from edgefast.api.kinds import KINDS, Object
from edgefast.api.snapshot import Key, Snapshot
from edgefast.collections.sorted_map import EMPTY
from edgefast.diagnostics.problem import ObjectRef, Problem
from edgefast.translate.pipeline import translate
from edgefast.translate.settings import Settings

__all__ = ["Reader"]

_PAGE = 500
_LISTS = 4  # collections read at once
_GETS = 16  # referenced objects read at once
#: A kind that is not there at the first look is not there: nobody waits for a CRD here.
_PACE = RequestRate(absent_after=0.0)


class _Meta(msgspec.Struct, rename="camel"):
    name: str = ""
    namespace: str = ""
    resource_version: str = ""


class _Address(msgspec.Struct):
    value: str = ""


class _Status(msgspec.Struct):
    addresses: list[_Address] | None = None


class _Head(msgspec.Struct):
    metadata: _Meta
    status: _Status | None = None


class Reader:
    """One reading of a cluster."""

    def __init__(self, kube: Kube) -> None:
        self.addresses: dict[Key, tuple[str, ...]] = {}  # of Gateways
        self.bundle_version = ""
        self.missing: tuple[str, ...] = ()  # kinds that are not served
        self._apis: Mapping[str, Api] = {}
        self._kube = kube
        self._store = Store(lambda: None, lambda _: None)
        self._source = Source(released=True)
        self._was_requested: set[Reference] = set()
        self._stand_ins: dict[Reference, Object] = {}
        self._unread: dict[Reference, str] = {}
        self._selected: tuple[frozenset[Selection], Table] = (frozenset(), EMPTY)
        self._unfollowed: dict[Selection, ApiError] = {}

    async def read(self, config: EdgeGateway, namespace: str) -> Snapshot:
        """Read all objects; `namespace` is the controller's."""
        served = await self._discover()
        self.bundle_version, self.missing = served.bundle_version, tuple(sorted(served.missing))
        self._apis = served.apis
        targets = Scope.of(config, namespace).targets((*BUILT_IN, *served.apis.values()))
        turns = asyncio.Semaphore(_LISTS)
        async with asyncio.TaskGroup() as tasks:
            for target in sorted(targets, key=str):
                if not target.metadata_only:
                    tasks.create_task(self._list(target, turns))
        return self._store.snapshot()

    async def fetch(self, snapshot: Snapshot, settings: Settings) -> Snapshot:
        """Return the snapshot with the Secrets, ConfigMaps and ClusterTrustBundles that it refers to and does not have."""
        turns = asyncio.Semaphore(_GETS)
        there = {("Secret", *key) for key in snapshot.secrets}
        there |= {("ConfigMap", *key) for key in snapshot.config_maps}
        there |= {("ClusterTrustBundle", *key) for key in snapshot.cluster_trust_bundles}
        wanted = [
            one
            for one in referenced(snapshot, settings) | IngressReferences().find(snapshot, settings)
            if one not in there and self._api_of(one[0]) is not None
        ]
        async with asyncio.TaskGroup() as tasks:
            for reference in wanted:
                if reference not in self._was_requested:
                    tasks.create_task(self._get(reference, settings, turns))
        read = self._store.snapshot()
        found = [read.get(ObjectRef(*one)) or self._stand_ins.get(one) for one in wanted]
        whole = snapshot.replace(changed=[one for one in found if one is not None])
        if not any(one.spec.endpoint_selector for one in whole.x_backends.values()):
            return whole
        pods = await self._select(translate(whole, settings).selections)
        return msgspec.structs.replace(whole, pods=pods)

    async def _select(self, selections: frozenset[Selection]) -> Table:
        """Return the Pods that XBackends select."""
        if selections != self._selected[0]:
            pods, self._unfollowed = await list_pods(self._kube, selections)
            self._selected = (selections, pods)
        return self._selected[1]

    @property
    def problems(self) -> tuple[Problem, ...]:
        """Objects that cannot be decoded."""
        groups = {info.kind: info.group for info in KINDS.values()}
        return tuple(
            Problem(ObjectRef(*name, groups[name[0]]), "", "Invalid", message)
            for name, message in sorted(self._store.problems.items())
        )

    @property
    def unread(self) -> tuple[str, ...]:
        """Secrets, ConfigMaps and ClusterTrustBundles that the credential may not read, and why."""
        return tuple(
            f"{kind} {f'{namespace}/' if namespace else ''}{name} cannot be read ({why}); it is "
            "assumed to be valid"
            for (kind, namespace, name), why in sorted(self._unread.items())
        ) + tuple(
            f"Pods of namespace {namespace} with {labels} cannot be read ({error.reason}); the "
            "result assumes that no such Pods exist"
            for (namespace, labels), error in sorted(self._unfollowed.items())
        )

    def _api_of(self, kind: str) -> Api | None:
        """Return where objects of a kind are, None when the API server does not have it."""
        return self._apis.get(kind) or APIS.get(("v1", kind))

    async def _discover(self) -> Served:
        discovery = Discovery(self._kube, _PACE)
        served = await discovery.look()
        if served.undecided:
            raise ApiError(0, "NotReady", "the API server does not know all its kinds yet")
        return served

    async def _list(self, target: Target, turns: asyncio.Semaphore) -> None:
        kind, cursor = target.api.kind, ""
        async with turns:
            while True:
                page = await self._kube.list(
                    target.api, target.namespace, limit=_PAGE, cursor=cursor
                )
                for raw in page.items or ():
                    self._put(kind, raw)
                cursor = page.cursor
                if not cursor:
                    return

    def _put(self, kind: str, raw: msgspec.Raw) -> None:
        head = decode_json(raw, _Head)
        meta = head.metadata
        if kind == "Gateway" and head.status is not None:
            message = head.status.addresses or ()
            self.addresses[meta.namespace, meta.name] = tuple(one.value for one in message)
        item = Item(meta.namespace, meta.name, meta.resource_version, raw)
        self._store.put(self._source, kind, item)

    async def _get(
        self, reference: Reference, settings: Settings, turns: asyncio.Semaphore
    ) -> None:
        kind, namespace, name = reference
        async with turns:
            try:
                api = self._api_of(kind)
                assert api is not None  # `fetch` asks for nothing else
                data = await self._kube.read(api.path(namespace, name))
            except ApiError as error:
                if error.forbidden:
                    self._stand_ins[reference] = make_placeholder(reference, settings)
                    self._unread[reference] = error.reason
                elif (
                    not error.not_found and error.status != 400
                ):  # 400: no object can have that name
                    raise
            else:
                self._put(kind, msgspec.Raw(data))
        self._was_requested.add(reference)
