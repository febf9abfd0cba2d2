"""KubeStatuses: statuses at a real API server, for the writer.

In: a Kube and a Cache. Out: `StatusApi`: what the watches saw, reads, and JSON merge patches of `.../status` that carry
the resourceVersion, so that the server refuses what was made from an older state. Must never: retry; the writer does.
"""

from __future__ import annotations

from typing import Any

import msgspec

from controller.kube.apis import APIS, Api
from controller.kube.cache import Cache
from controller.kube.client import Kube
from controller.kube.errors import ApiError
from controller.status.board import Ref
from controller.status.shape import SHAPES, Json
from controller.status.writer import Conflict, Gone, Present
from edgefast.problem import ObjectRef

__all__ = ["KubeStatuses"]

#: Seconds for one write: it must end before another replica can lead (see Lease.remaining).
_DEADLINE = 5.0


class KubeStatuses:
    """See the module's text."""

    def __init__(self, kube: Kube, cache: Cache) -> None:
        self._kube = kube
        self._cache = cache

    def present(self, ref: Ref) -> Present | None:
        """Return the object as the watches last saw it."""
        found = self._cache.present(ObjectRef(*ref, SHAPES[ref[0]].group))
        return Present(found.resource_version, found.status) if found is not None else None

    async def read(self, ref: Ref) -> Present:
        """Read the object; raises Gone, ApiError."""
        try:
            found = await self._kube.get(self._api(ref).path(*ref[1:]), deadline=_DEADLINE)
        except ApiError as error:
            if error.not_found:
                raise Gone from None
            raise
        return _present(found)

    async def write(self, ref: Ref, resource_version: str, fields: Json) -> Present:
        """Write fields of the status; raises Conflict, Gone, ApiError."""
        path = self._api(ref).path(*ref[1:], subresource="status")
        body = {"metadata": {"resourceVersion": resource_version}, "status": fields}
        try:
            return _present(await self._kube.patch(path, body, deadline=_DEADLINE))
        except ApiError as error:
            if error.conflict:
                raise Conflict from None
            if error.not_found:
                raise Gone from None
            raise

    def _api(self, ref: Ref) -> Api:
        served = self._cache.served.get(ref[0])
        if served is not None:
            return served
        shape = SHAPES[ref[0]]
        return APIS[f"{shape.group}/{shape.version}", ref[0]]


def _present(found: Any) -> Present:
    status = found.get("status")
    return Present(
        found["metadata"]["resourceVersion"], msgspec.json.encode(status) if status else b""
    )
