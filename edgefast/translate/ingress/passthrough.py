"""Passthrough: hosts whose TLS connections go to a Service as they come (ssl-passthrough).

In: a server, its names, a Lookup. Out: the backend of the TLSRoute of a host, or why the host has no backend. The Service of "/" gets
all connections whose SNI is the host; nothing else of its Ingresses applies to them. Plain HTTP is not changed.
Source: ingress-nginx controller.go (`getConfiguration`, passUpstreams): the first Ingress of a host decides.
Must never: pass connections of a host with a location "/" that answers 503.
"""

from __future__ import annotations

import msgspec

from edgefast.api.gateway.layer4_route import StreamRouteRule, TLSRoute, TLSRouteSpec
from edgefast.api.model.meta import ObjectMeta
from edgefast.api.model.origin import MARK
from edgefast.api.model.reference import BackendRef, ParentReference
from edgefast.diagnostics.reasons.word import Word
from edgefast.translate.ingress.backends import find_port
from edgefast.translate.ingress.lookup import Lookup
from edgefast.translate.ingress.sections import label_of
from edgefast.translate.ingress.servers import Server, Source

__all__ = ["Passed", "find_passed", "make_tls_route"]


class Passed(msgspec.Struct, frozen=True, kw_only=True):
    """Where the TLS connections of a host go."""

    source: Source  # of the location "/"
    field: str
    ref: BackendRef | None = None
    wrong: str = ""  # why there is no ref
    reason: Word = "BackendNotFound"


def find_passed(server: Server, owner: Source, lookup: Lookup) -> Passed:
    """Return the backend of the connections of a host; `owner`: the Ingress with the annotation."""
    root = next((one for one in server.locations if one.path == "/"), None)
    source = root.source if root is not None and root.source is not None else owner
    field = root.field if root is not None else "spec.rules"
    closed = source.closed or (server.closed_by is not None)
    if root is None or root.upstream is None or closed:
        wrong = "the path / answers 503" if closed else "the path / has no Service"
        return Passed(source=source, field=field, wrong=wrong, reason="NotSupported")
    upstream = root.upstream
    service, named = lookup.service(upstream.key), f"Service {'/'.join(upstream.key)}"
    if service is None:
        return Passed(source=source, field=field, wrong=f"{named} not found")
    if service.spec.type == "ExternalName":
        wrong = f"{named} of type ExternalName is not served"
        return Passed(source=source, field=field, wrong=wrong, reason="NotSupported")
    port = find_port(service, upstream.port)
    if port is None:
        wrong = f"{named} has no port {upstream.port}"
        return Passed(source=source, field=field, wrong=wrong, reason="PortNotFound")
    ref = BackendRef(name=upstream.service, port=port.port)
    return Passed(source=source, field=field, ref=ref)


def make_tls_route(host: str, passed: Passed, ref: BackendRef, parent: ParentReference) -> TLSRoute:
    """Return the TLSRoute of a host."""
    name = f"{passed.source.ingress.metadata.name}{MARK}-tls-{label_of(host)}"
    meta = ObjectMeta(name=name, namespace=passed.source.namespace)
    rule = StreamRouteRule(backend_refs=(ref,))
    return TLSRoute(
        metadata=meta, spec=TLSRouteSpec(parent_refs=(parent,), hostnames=(host,), rules=(rule,))
    )
