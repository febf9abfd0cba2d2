"""Kube: the verbs of the API, each with a deadline in seconds, and watches as batches of events.

In: paths, or manifests as plain values.
Out: plain values, or bytes if the caller decodes into its own types; ApiError for every answer but
a success (connection.py). `urgent` calls are exempt from the limits of other calls.
Source: Kubernetes API concepts.
Must never: contain the name of a kind, or change a manifest.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec

from controller.kube.access import Access, open_access
from controller.kube.apis import APIS, Api, group_path, split_api_version
from controller.kube.connection import CALL_DEADLINE, JSON, Connection, Request
from controller.kube.denials import Denials
from controller.kube.depth import decode_json
from controller.kube.errors import UNREACHABLE, ApiError

__all__ = ["CALL_DEADLINE", "Kube", "Page", "PatchType", "TokenReview"]

#: Largest event of a watch; an object has at most 1.5 MiB in etcd, and up to twice that as JSON.
_MAX_EVENT = 8 * 1024 * 1024

PatchType = Literal["merge", "json", "strategic"]
_PATCH_TYPES: Mapping[str, str] = {
    "merge": "application/merge-patch+json",
    "json": "application/json-patch+json",
    "strategic": "application/strategic-merge-patch+json",
}
_METADATA = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
_METADATA_LIST = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"


class _ListMeta(msgspec.Struct, rename="camel"):
    resource_version: str = ""
    continue_: str = msgspec.field(default="", name="continue")


class Page(msgspec.Struct, rename="camel"):
    """A page of a list; items are raw and belong to the page's bytes: decode them soon or copy them."""

    metadata: _ListMeta
    items: list[msgspec.Raw] | None = None

    @property
    def cursor(self) -> str:
        """Return what asks for the next page, "" at the last one."""
        return self.metadata.continue_


class TokenReview(msgspec.Struct, frozen=True, kw_only=True):
    """What the API server says of a token."""

    authenticated: bool = False
    username: str = ""
    groups: tuple[str, ...] = ()
    extra: Mapping[str, tuple[str, ...]] = {}
    audiences: tuple[str, ...] = ()
    error: str = ""


class Kube:
    """One API server; use as `async with await Kube.open() as kube`, or call `close`."""

    def __init__(
        self, access: Access, *, rate: float = 200.0, burst: int = 400, at_once: int = 64
    ) -> None:
        self._connection = Connection(access, rate=rate, burst=burst, at_once=at_once)

    @classmethod
    async def open(
        cls, kubeconfig: Path | None = None, context: str | None = None, *, rate: float = 200.0
    ) -> Kube:
        """Find the API server (see `open_access`); AccessError when there is none."""
        return cls(await open_access(kubeconfig, context), rate=rate, burst=int(rate * 2))

    async def __aenter__(self) -> Kube:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close all connections."""
        await self._connection.close()

    @property
    def namespace(self) -> str:
        """The namespace that we are in."""
        return self._connection.access.namespace

    @property
    def denials(self) -> Denials:
        """Calls that RBAC denies."""
        return self._connection.denials

    # --- reading --------------------------------------------------------------------------------

    async def get(
        self,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        deadline: float = CALL_DEADLINE,
        urgent: bool = False,
    ) -> Any:
        """Return an object as plain values."""
        return _decode(await self.read(path, query=query, deadline=deadline, urgent=urgent))

    async def read(
        self,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        metadata_only: bool = False,
        deadline: float = CALL_DEADLINE,
        urgent: bool = False,
    ) -> bytes:
        """Return an object's JSON; `metadata_only` leaves everything but `metadata` out."""
        accept = _METADATA if metadata_only else JSON
        request = Request(path=path, query=query or {}, accept=accept)
        return await self._connection.call(request, deadline, urgent=urgent)

    async def read_metadata(self, path: str, *, deadline: float = CALL_DEADLINE) -> Any | None:
        """Return an object with nothing but its metadata, None when there is none."""
        try:
            return _decode(await self.read(path, metadata_only=True, deadline=deadline))
        except ApiError as error:
            if error.not_found:
                return None
            raise

    async def list(
        self,
        api: Api,
        namespace: str | None = None,
        *,
        limit: int = 0,
        cursor: str = "",
        label_selector: str = "",
        field_selector: str = "",
        metadata_only: bool = False,
        deadline: float = 60.0,
    ) -> Page:
        """Return a page of at most `limit` objects (0: all); None is every namespace."""
        query = {
            "limit": str(limit) if limit else "",
            "continue": cursor,
            "labelSelector": label_selector,
            "fieldSelector": field_selector,
        }
        accept = _METADATA_LIST if metadata_only else JSON
        request = Request(path=api.path(namespace or ""), query=query, accept=accept)
        return _decode_page(await self._connection.call(request, deadline))

    async def list_all(
        self,
        api: Api,
        namespace: str | None = None,
        *,
        label_selector: str = "",
        field_selector: str = "",
    ) -> tuple[Any, ...]:
        """Return all objects as plain values; for small collections."""
        found: tuple[Any, ...] = ()
        cursor = ""
        while True:
            page = await self.list(
                api,
                namespace,
                limit=500,
                cursor=cursor,
                label_selector=label_selector,
                field_selector=field_selector,
            )
            found += tuple(map(_decode, page.items or ()))
            cursor = page.cursor
            if not cursor:
                return found

    async def watch(
        self,
        api: Api,
        namespace: str | None = None,
        *,
        resource_version: str,
        seconds: float,
        silence: float,
        label_selector: str = "",
        field_selector: str = "",
        metadata_only: bool = False,
    ) -> AsyncGenerator[Sequence[bytes], None]:
        """Yield batches of events (JSON lines) since a resource version, bookmarks included.

        The first batch is empty: the server has accepted the watch.
        Ends when the server ends it, after about `seconds`. ApiError when it is refused, breaks, or says
        nothing for `silence` seconds (SILENT): then the other side is gone without a word.
        """
        query = {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": resource_version,
            "timeoutSeconds": str(max(1, int(seconds))),
            "labelSelector": label_selector,
            "fieldSelector": field_selector,
        }
        accept = _METADATA if metadata_only else JSON
        request = Request(path=api.path(namespace or ""), query=query, accept=accept)
        rest = b""
        async with contextlib.aclosing(self._connection.stream(request, silence)) as chunks:
            async for chunk in chunks:
                # A line may come in many chunks: only whole lines are cut out.
                end = chunk.rfind(b"\n")
                if chunk and end < 0:
                    rest += chunk
                    if len(rest) > _MAX_EVENT:
                        raise ApiError(0, UNREACHABLE, "a watch event is not terminated")
                    continue
                yield (rest + chunk[:end]).split(b"\n") if chunk else ()
                rest = chunk[end + 1 :]

    # --- writing --------------------------------------------------------------------------------

    async def patch(
        self,
        path: str,
        body: Any,
        type: PatchType = "merge",
        *,
        query: Mapping[str, str] | None = None,
        deadline: float = CALL_DEADLINE,
        urgent: bool = False,
    ) -> Any:
        """Patch an object, or a part of it such as `.../status`; return it."""
        return await self._write(
            "PATCH", path, body, _PATCH_TYPES[type], query=query, deadline=deadline, urgent=urgent
        )

    async def apply(
        self,
        manifest: Mapping[str, Any],
        field_manager: str,
        force: bool = False,
        *,
        subresource: str = "",
        dry_run: bool = False,
        deadline: float = CALL_DEADLINE,
    ) -> Any:
        """Apply a manifest on the server's side; `force` takes over fields that others own. Return the object."""
        api = await self.resolve(manifest["apiVersion"], manifest["kind"])
        query = {
            "fieldManager": field_manager,
            "force": "true" if force else "false",
            "dryRun": "All" if dry_run else "",
        }
        # JSON is YAML; every API server that applies reads it under this type.
        return await self._write(
            "PATCH",
            api.path_of(manifest, subresource),
            manifest,
            "application/apply-patch+yaml",
            query=query,
            deadline=deadline,
        )

    async def create(
        self, manifest: Mapping[str, Any], *, deadline: float = CALL_DEADLINE, urgent: bool = False
    ) -> Any:
        """Create an object and return it; ApiError.exists when its name is taken."""
        api = await self.resolve(manifest["apiVersion"], manifest["kind"])
        path = api.path(manifest.get("metadata", {}).get("namespace", ""))
        return await self._write("POST", path, manifest, deadline=deadline, urgent=urgent)

    async def replace(
        self,
        manifest: Mapping[str, Any],
        *,
        subresource: str = "",
        deadline: float = CALL_DEADLINE,
        urgent: bool = False,
    ) -> Any:
        """Put an object in the place of the one with its resourceVersion; ApiError.conflict when that is past."""
        api = await self.resolve(manifest["apiVersion"], manifest["kind"])
        path = api.path_of(manifest, subresource)
        return await self._write("PUT", path, manifest, deadline=deadline, urgent=urgent)

    async def replace_status(
        self, manifest: Mapping[str, Any], *, deadline: float = CALL_DEADLINE
    ) -> Any:
        """Replace the status of an object; else as `replace`."""
        return await self.replace(manifest, subresource="status", deadline=deadline)

    async def delete(
        self,
        path: str,
        *,
        uid: str = "",
        propagation: Literal["Background", "Foreground", "Orphan"] = "Background",
        deadline: float = CALL_DEADLINE,
    ) -> bool:
        """Delete an object; False when there is none. With `uid`, only that very one (else ApiError.conflict)."""
        body: dict[str, Any] = {"propagationPolicy": propagation}
        if uid:
            body["preconditions"] = {"uid": uid}
        try:
            await self._write("DELETE", path, body, deadline=deadline)
        except ApiError as error:
            if error.not_found:
                return False
            raise
        return True

    async def token_review(
        self, token: str, audiences: Sequence[str] = (), *, deadline: float = CALL_DEADLINE
    ) -> TokenReview:
        """Ask whose token this is, and whether it is meant for one of the audiences."""
        manifest = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenReview",
            "spec": {"token": token, "audiences": list(audiences)},
        }
        path = APIS["authentication.k8s.io/v1", "TokenReview"].path()
        message = await self._write("POST", path, manifest, deadline=deadline, urgent=True)
        status = message.get("status") or {}
        user = status.get("user") or {}
        return TokenReview(
            authenticated=bool(status.get("authenticated")),
            username=user.get("username", ""),
            groups=tuple(user.get("groups") or ()),
            extra={key: tuple(values) for key, values in (user.get("extra") or {}).items()},
            audiences=tuple(status.get("audiences") or ()),
            error=status.get("error", ""),
        )

    async def resolve(self, api_version: str, kind: str) -> Api:
        """Return the Api of a kind: from the table, else as the server says. ApiError 404 when it has none."""
        if (known := APIS.get((api_version, kind))) is not None:
            return known
        group, version = split_api_version(api_version)
        found = await self.get(group_path(group, version))
        for one in found.get("resources") or ():
            if one["kind"] == kind and "/" not in one["name"]:
                return Api(group, version, kind, one["name"], one["namespaced"])
        raise ApiError(404, "NotFound", f"the server has no kind {kind} in {api_version}")

    # --- one call -------------------------------------------------------------------------------

    async def _write(
        self,
        method: str,
        path: str,
        body: Any,
        content_type: str = JSON,
        *,
        query: Mapping[str, str] | None = None,
        deadline: float = CALL_DEADLINE,
        urgent: bool = False,
    ) -> Any:
        data = body if isinstance(body, bytes) else msgspec.json.encode(body)
        request = Request(
            method=method, path=path, query=query or {}, body=data, content_type=content_type
        )
        return _decode(await self._connection.call(request, deadline, urgent=urgent))


def _decode(data: bytes | msgspec.Raw) -> Any:
    """Decode JSON of the server; what is none came from something in between."""
    try:
        return decode_json(data)
    except msgspec.MsgspecError as error:
        raise _not_an_api(error) from None


def _decode_page(data: bytes) -> Page:
    try:
        return decode_json(data, Page)
    except msgspec.MsgspecError as error:
        raise _not_an_api(error) from None


def _not_an_api(error: Exception) -> ApiError:
    return ApiError(0, UNREACHABLE, f"the answer is not a valid Kubernetes object: {error}")
