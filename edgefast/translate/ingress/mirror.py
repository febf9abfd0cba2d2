"""Mirror: mirror-target, mirror-host and mirror-request-body -> a RequestMirror filter and the Backend that it names.

In: the annotations of an Ingress. Out: the target, then filter and Backend, or a note. The form that is served is a URL of http
with the variable $request_uri, or without a path: the copy has the path of the request.
Source: ingress-nginx template.go (`buildMirrorLocations`).
Must never: wait for the answer to a copy.
"""

from __future__ import annotations

import hashlib
import ipaddress
import re

import msgspec

from edgefast.api.edge.backend import (
    Backend,
    BackendEndpoint,
    BackendSpec,
    FQDNEndpoint,
    IPEndpoint,
)
from edgefast.api.gateway.httproutefilter import HTTPRequestMirrorFilter, HTTPRouteFilter
from edgefast.api.kinds import EDGE_GROUP
from edgefast.api.model.meta import ObjectMeta
from edgefast.api.model.origin import MARK
from edgefast.api.model.reference import BackendObjectReference
from edgefast.translate.ingress.annotation_reader import AnnotationReader
from edgefast.translate.ingress.configmap import Note
from edgefast.translate.ingress.servers import Source
from edgefast.translate.ingress.values import one_of

_TARGET = re.compile(r"(https?)://([A-Za-z0-9.-]{1,253})(?::([0-9]{1,5}))?(/?\$request_uri)?")


class Mirror(msgspec.Struct, frozen=True, kw_only=True):
    """A copy of requests to another address."""

    filter: HTTPRouteFilter | None = None
    backend: Backend | None = None
    notes: tuple[Note, ...] = ()


def read_mirror(reader: AnnotationReader) -> str:
    """Return mirror-target, "" without it."""
    values = reader.values
    target = reader.read("", values.text, "mirror-target", lambda one: bool(one.strip()))
    if (
        target
        and reader.read("on", values.text, "mirror-request-body", one_of("on", "off")) == "off"
    ):
        reader.warn("mirror-request-body", "copies of requests always have their body")
    if target and values.has("mirror-host"):
        reader.warn("mirror-host", "copies of requests have the Host of the request")
    values.seen.update(("mirror-host", "mirror-request-body"))
    return target


def translate_mirror(source: Source) -> Mirror:
    """Translate the mirror-target of an Ingress."""
    found = _TARGET.fullmatch(source.annotations.mirror.strip())
    port = int(found[3] or 80) if found else 0
    if found is None or found[1] != "http" or not 1 <= port <= 65535:
        message = "not served (allowed: http://HOST[:PORT]$request_uri); no copies are sent"
        return Mirror(
            notes=(Note(name="mirror-target", message=message, error=True, reason="NotSupported"),)
        )
    host = found[2].lower().rstrip(".")
    try:
        endpoint = BackendEndpoint(
            ip=IPEndpoint(address=str(ipaddress.ip_address(host)), port=port)
        )
    except ValueError:
        endpoint = BackendEndpoint(fqdn=FQDNEndpoint(hostname=host, port=port))
    name = f"mirror{MARK}-{hashlib.blake2s(f'{host}:{port}'.encode(), digest_size=6).hexdigest()}"
    backend = Backend(
        metadata=ObjectMeta(name=name, namespace=source.namespace),
        spec=BackendSpec(endpoints=(endpoint,)),
    )
    ref = BackendObjectReference(group=EDGE_GROUP, kind="Backend", name=name)
    made = HTTPRouteFilter(
        type="RequestMirror", request_mirror=HTTPRequestMirrorFilter(backend_ref=ref)
    )
    message = "copies of requests have the Host of the request, not that of the target"
    return Mirror(
        filter=made,
        backend=backend,
        notes=(Note(name="mirror-target", message=message, reason="NotSupported"),),
    )
