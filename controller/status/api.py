"""KubeStatuses: the status API of a real API server, for the writer.

In: a Kube and a Cache.
Out: `StatusApi`: statuses from the watches, reads, and JSON merge patches of `.../status` with the
resourceVersion, so that the server refuses patches of an older state.
Must never: retry; the writer does.
"""

from __future__ import annotations

import datetime
import time
from collections.abc import Collection
from typing import Any

import msgspec

from controller.kube.apis import APIS, Api
from controller.kube.cache import Cache
from controller.kube.client import Kube
from controller.kube.errors import ApiError
from controller.kube.status_author import AUTHOR, find_own_entry
from controller.status.shape import SHAPES, Json
from controller.status.tracker import Ref
from controller.status.writer import Conflict, ObjectDeleted, Present
from edgefast.diagnostics.problem import ObjectRef

__all__ = ["KubeStatuses", "SystemClock"]


#: Seconds for one write: it must end before another replica can lead (see Lease.remaining).
_DEADLINE = 5.0


class KubeStatuses:
    """Reads and patches statuses at the API server."""

    def __init__(self, kube: Kube, cache: Cache, author: str = AUTHOR) -> None:
        """`author`: the field manager of what is written, the same as the cache's."""
        self._kube = kube
        self._cache = cache
        self._author = author

    def present(self, ref: Ref) -> Present | None:
        """Return the object as the watches last saw it."""
        found = self._cache.present(ObjectRef(*ref, SHAPES[ref[0]].group))
        if found is None:
            return None
        return Present(found.resource_version, found.status, bool(found.word))

    def is_ours(self, ref: Ref, *, held: bool = False) -> bool:
        """Tell whether what the status of an object said when last seen is this controller's word.

        `held`: the object is served by a fleet of ours, so that an unsigned word is none of another installation.
        """
        found = self._cache.present(ObjectRef(*ref, SHAPES[ref[0]].group))
        return found is not None and found.word in ("ours", "unsigned" if held else "ours")

    def saying(self, names: Collection[str]) -> list[Ref]:
        """Return the routes and policies with an entry of one of these controllerNames."""
        kinds = [kind for kind, shape in SHAPES.items() if shape.entries]
        found = self._cache.saying(kinds, [name.encode() for name in names])
        return [(one.kind, one.namespace, one.name) for one in found]

    def is_elsewhere(self, gateway: tuple[str, str], addresses: Collection[str]) -> bool:
        """Tell whether somebody else has a Gateway programmed, at addresses other than these.

        Without an address to compare with nobody has: what it says may be of our own fleet.
        """
        found = self._cache.present(ObjectRef("Gateway", *gateway, SHAPES["Gateway"].group))
        if found is None or found.word or not found.status:
            return False
        status: Json = msgspec.json.decode(found.status)
        at = {one.get("value") for one in status.get("addresses") or ()}
        return (
            bool(at)
            and bool(addresses)
            and at.isdisjoint(addresses)
            and any(
                one.get("type") == "Programmed"
                and one.get("status") == "True"
                and one.get("observedGeneration", found.generation) >= found.generation
                for one in status.get("conditions") or ()
            )
        )

    async def read(self, ref: Ref) -> Present:
        """Read the object; raises Gone, ApiError."""
        try:
            found = await self._kube.get(self._api(ref).path(*ref[1:]), deadline=_DEADLINE)
        except ApiError as error:
            if error.not_found:
                raise ObjectDeleted from None
            raise
        return self._seen(ref, found)

    async def write(self, ref: Ref, resource_version: str, fields: Json) -> Present:
        """Write fields of the status; raises Conflict, Gone, ApiError."""
        path = self._api(ref).path(*ref[1:], subresource="status")
        body = {"metadata": {"resourceVersion": resource_version}, "status": fields}
        try:
            query = {"fieldManager": self._author}
            found = await self._kube.patch(path, body, query=query, deadline=_DEADLINE)
            return self._seen(ref, found)
        except ApiError as error:
            if error.conflict:
                raise Conflict from None
            if error.not_found:
                raise ObjectDeleted from None
            raise

    def _api(self, ref: Ref) -> Api:
        served = self._cache.served.get(ref[0])
        if served is not None:
            return served
        shape = SHAPES[ref[0]]
        return APIS[f"{shape.group}/{shape.version}", ref[0]]

    def _seen(self, ref: Ref, found: Any) -> Present:
        status = found.get("status")
        return Present(
            found["metadata"]["resourceVersion"],
            msgspec.json.encode(status) if status else b"",
            bool(find_own_entry(msgspec.json.encode(found), ref[0], self._author)),
        )


# --- systemClock: the time, as the status writer wants it ---


class SystemClock:
    """See `controller.status.writer.Clock`."""

    def monotonic(self) -> float:
        """Return seconds that only grow."""
        return time.monotonic()

    def stamp(self) -> str:
        """Return the time as RFC 3339 text with seconds."""
        return datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
