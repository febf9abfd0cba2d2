"""Discovery: the kinds that the API server serves, their versions, and the release of their CRDs.

In: an API server.
Out: `Served`. The newest version that edgefast and the server support is used (v1, else v1beta1). A
kind counts as missing only after two equal results, and as removed only after a while, because a
starting API server briefly lacks its CRDs. Kinds of OPTIONAL depend on an API server's release and
flags, or on the experimental channel; once they were found, they are expected.
Must never: need more permission than every authenticated client has, except to read the annotation
of one CRD ("" without).
"""

from __future__ import annotations

import time
from collections.abc import Mapping

import msgspec

from controller.kube.apis import APIS, Api, group_path
from controller.kube.client import Kube
from controller.kube.errors import ApiError
from controller.kube.throttle import RequestRate
from edgefast.api.core.clustertrustbundle import CERTIFICATES_GROUP
from edgefast.api.kinds import EDGE_GROUP, EXPERIMENTAL_GROUP, KINDS, KindInfo
from edgefast.api.model.reference import GATEWAY_GROUP

__all__ = ["OPTIONAL", "Discovery", "Served"]

_GROUPS = (GATEWAY_GROUP, EDGE_GROUP, EXPERIMENTAL_GROUP, CERTIFICATES_GROUP)
#: Kinds of Kubernetes itself that not every API server has, and those that are installed with the experimental channel alone.
OPTIONAL = frozenset(
    kind for group, kind in KINDS if group in (CERTIFICATES_GROUP, EXPERIMENTAL_GROUP)
)

_BUNDLE_VERSION = "gateway.networking.k8s.io/bundle-version"
#: CRDs without the annotation are of no version that we know (GatewayClassConditionStatusSupportedVersion).
_UNVERSIONED = "unversioned"
_CRD = APIS["apiextensions.k8s.io/v1", "CustomResourceDefinition"]
_GATEWAY_CLASS_CRD = _CRD.path(name="gatewayclasses.gateway.networking.k8s.io")


class Served(msgspec.Struct, frozen=True):
    """What one look found."""

    apis: Mapping[str, Api]  # by kind; of groups that come with CRDs, and of OPTIONAL
    missing: frozenset[str]  # kinds that are not served
    undecided: frozenset[str]  # kinds that were not found just now: another look is needed
    bundle_version: str  # of the Gateway API CRDs, "" when unknown


class Discovery:
    """Looks, and remembers what it saw before."""

    def __init__(self, kube: Kube, pace: RequestRate) -> None:
        self._kube = kube
        self._pace = pace
        self._seen: dict[str, Api] = {}
        self._absent_since: dict[str, float] = {}
        self._bundle_version = ""

    async def look(self) -> Served:
        """Ask the server; ApiError when it does not answer."""
        found: dict[str, Api] = {}
        for group in _GROUPS:
            found.update(await self._look_at(group))
        kinds = {kind for group, kind in KINDS if group in _GROUPS}
        awaited = kinds - (OPTIONAL - self._seen.keys())
        ready = found.keys() >= awaited or await self._is_ready()
        missing: set[str] = set()
        undecided: set[str] = set()
        for kind in kinds - found.keys():
            if (ready and kind not in awaited) or self._is_absent(kind, ready):
                missing.add(kind)
                self._seen.pop(kind, None)
            elif kind in self._seen:
                found[kind] = self._seen[kind]  # as before, until it is sure
            else:
                undecided.add(kind)
        for kind in found.keys() - self._absent_since.keys():
            self._seen[kind] = found[kind]
        version = await self.look_at_version()
        return Served(found, frozenset(missing), frozenset(undecided), version)

    async def look_at_version(self) -> str:
        """Return the release of the CRDs as it is now, "" when unknown; as before when it cannot be had."""
        if (version := await self._read_bundle_version()) is not None:
            self._bundle_version = version
        return self._bundle_version

    def _is_absent(self, kind: str, ready: bool) -> bool:
        """Tell whether a kind that was not found has been away for long enough to believe it."""
        now = time.monotonic()
        since = self._absent_since.setdefault(kind, now)
        needed = self._pace.gone_after if kind in self._seen else self._pace.absent_after
        if not ready:
            self._absent_since[kind] = now
            return False
        return now - since >= needed

    async def _look_at(self, group: str) -> dict[str, Api]:
        """Return the kinds of a group, each in its newest version that we know."""
        infos = [info for info in KINDS.values() if info.group == group]
        try:
            known = await self._kube.get(group_path(group))
        except ApiError as error:
            if error.not_found:
                return {}
            raise
        served = {one["version"] for one in known.get("versions") or ()}
        plurals: dict[str, set[str]] = {}
        for version in sorted({version for info in infos for version in info.versions} & served):
            plurals[version] = await self._plurals(group, version)
        found = {}
        for info in infos:
            for version in info.versions:  # newest first
                if info.plural in plurals.get(version, ()):
                    found[info.kind] = _api(info, version)
                    self._absent_since.pop(info.kind, None)
                    break
        return found

    async def _plurals(self, group: str, version: str) -> set[str]:
        try:
            listed = await self._kube.get(group_path(group, version))
        except ApiError as error:
            if error.not_found:  # it went between two questions
                return set()
            raise
        return {one["name"] for one in listed.get("resources") or ()}

    async def _is_ready(self) -> bool:
        """Tell whether the server says that it knows all its kinds; one that does not tell is believed."""
        try:
            await self._kube.read("/readyz")
        except ApiError as error:
            return error.forbidden or error.not_found
        return True

    async def _read_bundle_version(self) -> str | None:
        """Return the annotation, "" when the CRD is not shown to us, None when it cannot be had now."""
        try:
            found = await self._kube.read_metadata(_GATEWAY_CLASS_CRD)
        except ApiError as error:
            return "" if error.forbidden else None
        if found is None:
            return ""
        notes = (found.get("metadata") or {}).get("annotations") or {}
        return str(notes.get(_BUNDLE_VERSION) or _UNVERSIONED)


def _api(info: KindInfo, version: str) -> Api:
    return Api(info.group, version, info.kind, info.plural, info.namespaced)
