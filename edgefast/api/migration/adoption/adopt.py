"""Adopt: one document of Envoy Gateway as a document of edgefast.

In: a plain document. Out: an `AdoptedDocument`, None for a document that is not adopted: its kind is another one, or its targets
cannot be read. Such a policy stays one of another project, and closes its targets if it decides access.
Must never: raise for what a user wrote.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from edgefast.api.edge.policy_target import BACKEND_TARGETS
from edgefast.api.kinds import EDGE_GROUP
from edgefast.api.migration.adoption.adopted_document import (
    ENVOY_GROUP,
    AdoptedDocument,
    Note,
    PlainSettings,
)
from edgefast.api.migration.adoption.backend import adopt_backend
from edgefast.api.migration.adoption.client_traffic import adopt_client_traffic
from edgefast.api.migration.adoption.envoy_proxy import adopt_envoy_proxy
from edgefast.api.migration.adoption.fields import Fields
from edgefast.api.migration.adoption.own_fields import find_own_fields
from edgefast.api.migration.adoption.policy_targets import (
    Targets,
    is_merging,
    read_merge,
    take_targets,
)
from edgefast.api.migration.adoption.references import rename_references
from edgefast.api.migration.adoption.route_settings import (
    RETRY_PLACES,
    read_cors,
    read_rate_limit,
    read_retry,
)
from edgefast.api.model.policy_target import PolicyTarget
from edgefast.api.model.reference import GATEWAY_GROUP

__all__ = ["adopt_document"]

_VERSION = f"{ENVOY_GROUP}/v1alpha1"
_SOURCES = {"Local": "Gateway"}


def adopt_document(raw: dict[str, Any]) -> AdoptedDocument | None:
    """Return the document of edgefast that a document is; references in it are renamed in place, whatever it is."""
    kind = raw.get("kind")
    if isinstance(raw.get("spec"), dict | list):
        rename_references(raw["spec"])
    if raw.get("apiVersion") != _VERSION or not isinstance(kind, str):
        return None
    read = _READERS.get(kind)
    document = read(raw) if read is not None else None
    if document is None:
        return None
    notes = tuple(find_own_fields(kind, raw))
    if not isinstance(raw.get("spec"), dict | None):
        notes = (Note(("spec",), "not an object", "", "closes", "Invalid"),)
    if not notes:
        return document
    return msgspec.structs.replace(document, notes=(*notes, *document.notes))


def _adopt_security(raw: dict[str, Any]) -> AdoptedDocument | None:
    fields = Fields(raw.get("spec"))
    targets = take_targets(fields)
    if targets is None:
        return None
    merge, merged = read_merge(fields, targets)
    notes = [*merged, *_drop_refetch(fields)]
    cors = fields.take("cors")
    found: dict[str, Any] | None = None
    if cors is not None:
        found, more = read_cors(cors)
        notes += more
        if "GRPCRoute" in targets.kinds:
            notes.append(Note(("spec", "cors"), "not applied to GRPCRoutes"))
    return _policy(raw, fields, targets, merge, notes, PlainSettings(cors=found))


def _adopt_traffic(raw: dict[str, Any]) -> AdoptedDocument | None:
    fields = Fields(raw.get("spec"))
    targets = take_targets(fields)
    if targets is None:
        return None
    merge, merged = read_merge(fields, targets)
    notes = [*merged]
    limits: dict[str, dict[str, Any]] = {}
    retry: dict[str, Any] | None = None
    backend_request = ""
    value = fields.take("rateLimit")
    if value is not None:
        limits, more = read_rate_limit(value)
        notes += more
    value = fields.take("retry")
    if value is not None:
        retry, backend_request, more = read_retry(value)
        notes += more
    _drop_upgrades(fields)
    _move_sources(fields)
    notes += _find_misplaced(targets, limits, retry)
    settings = PlainSettings(
        global_limits=limits.get("global"),
        local_limits=limits.get("local"),
        retry=retry,
        backend_request=backend_request,
    )
    return _policy(raw, fields, targets, merge, notes, settings)


def _find_misplaced(
    targets: Targets, limits: dict[str, dict[str, Any]], retry: dict[str, Any] | None
) -> list[Note]:
    """Return notes about settings of routes whose targets have no rules for them."""
    notes = []
    backends = targets.kinds.intersection(BACKEND_TARGETS)
    if limits and backends:
        message = "a rate limit is for Gateways and routes"
        notes.append(Note(("spec", "rateLimit"), message, "write a policy of the routes", "closes"))
    if retry is not None and targets.kinds.difference(("Gateway", "ListenerSet", "HTTPRoute")):
        message = "not applied to targets other than Gateways and HTTPRoutes"
        notes.append(Note(("spec", "retry"), message, "use EdgeProxy spec.grpc.retry for gRPC"))
    return notes


def _drop_refetch(fields: Fields) -> Iterator[Note]:
    """Leave out how soon keys of tokens are fetched again after a failure."""
    jwt = fields.rest.get("jwt")
    given = jwt.get("providers") if isinstance(jwt, dict) else None
    for at, one in enumerate(given if isinstance(given, list) else ()):
        keys = one.get("remoteJWKS") if isinstance(one, dict) else None
        if isinstance(keys, dict) and keys.pop("failedRefetchDuration", None) is not None:
            path = ("spec", "jwt", "providers", at, "remoteJWKS", "failedRefetchDuration")
            yield Note(path, "not applied", "edgefast waits 1 to 60 seconds after a failed fetch")


def _drop_upgrades(fields: Fields) -> None:
    """Leave out upgrades to WebSocket, which pass without a setting."""
    given = fields.rest.get("httpUpgrade")
    if not isinstance(given, list):
        return
    names = [one.get("type") if isinstance(one, dict) else None for one in given]
    if all(str(one).lower() == "websocket" for one in names):
        fields.take("httpUpgrade")


def _move_sources(fields: Fields) -> None:
    """Move `source` of a response override into its match."""
    given = fields.rest.get("responseOverride")
    for one in given if isinstance(given, list) else ():
        if isinstance(one, dict) and "source" in one and isinstance(one.get("match"), dict):
            source = one.pop("source")
            if source is not None:
                known = _SOURCES.get(source, source) if isinstance(source, str) else source
                one["match"]["source"] = known


def _policy(
    raw: dict[str, Any],
    fields: Fields,
    targets: Targets,
    merge: str,
    notes: list[Note],
    settings: PlainSettings,
) -> AdoptedDocument:
    refs = list(targets.refs)
    spec = {**fields.rest, "targetRefs": refs or [_stand_in(targets.selectors[0])]}
    if merge != "Inherit":
        spec["mergeType"] = merge
    return AdoptedDocument(
        raw={**raw, "apiVersion": f"{EDGE_GROUP}/v1alpha1", "spec": spec},
        notes=tuple(notes),
        selectors=targets.selectors,
        only_selectors=not refs,
        settings=settings,
        merges=is_merging(raw),
        places=RETRY_PLACES if settings.retry is not None else (),
    )


def _stand_in(one: PolicyTarget) -> dict[str, Any]:
    """Return a reference of the kind of a selector, for the rules about kinds."""
    group = {"Service": "", "Backend": EDGE_GROUP}.get(one.kind, GATEWAY_GROUP)
    return {"group": group, "kind": one.kind, "name": "selected"}


def _adopt_filter(raw: dict[str, Any]) -> AdoptedDocument:
    fields = Fields(raw.get("spec"))
    notes: tuple[Note, ...] = ()
    rewrite = fields.rest.get("urlRewrite")
    if isinstance(rewrite, dict) and rewrite.get("hostname") is not None:
        fields.take("urlRewrite")  # its path alone would be another rewrite
        message = (
            "a host from a header or the path is not supported; rules with the filter answer 500"
        )
        hint = "use the filter URLRewrite, whose hostname is a name"
        notes = (Note(("spec", "urlRewrite", "hostname"), message, hint, "closes"),)
    document = {**raw, "apiVersion": f"{EDGE_GROUP}/v1alpha1", "spec": fields.rest}
    return AdoptedDocument(raw=document, notes=notes)


_READERS: dict[str, Callable[[dict[str, Any]], AdoptedDocument | None]] = {
    "Backend": adopt_backend,
    "BackendTrafficPolicy": _adopt_traffic,
    "ClientTrafficPolicy": adopt_client_traffic,
    "EnvoyProxy": adopt_envoy_proxy,
    "HTTPRouteFilter": _adopt_filter,
    "SecurityPolicy": _adopt_security,
}
