"""Ingress: hosts, paths and backends of HTTP requests, with certificates.

In: `networking.k8s.io/v1` documents. Out: `Ingress`. A path without `pathType` has the type ImplementationSpecific,
which a class of ingress-nginx serves as Prefix.
Source: Kubernetes API reference, Ingress v1.
Must never: resolve a Service or read an annotation; edgefast/translate/ingress does.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from edgefast.api.model.fail_closed import Closed
from edgefast.api.model.fields import Element, ObjectName, Resource, expects
from edgefast.api.model.meta import ObjectMeta

NETWORKING_GROUP = "networking.k8s.io"

#: The older way to name a class; it has priority over `spec.ingressClassName`.
CLASS_ANNOTATION = "kubernetes.io/ingress.class"

#: Lists of one Ingress. The Kubernetes API has no limit but the size of an object (1.5 MiB in etcd).
MAX_RULES = 1024
MAX_PATHS = 1024
MAX_CERTIFICATES = 1024
#: Characters of a path, as in an HTTPRoute.
MAX_PATH = 1024

#: A DNS name, as in edgefast/api/model/fields.py.
_LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
SUBDOMAIN = rf"{_LABEL}(\.{_LABEL})*"

PathType = Literal["Exact", "Prefix", "ImplementationSpecific"]


class ServiceBackendPort(Element, frozen=True, kw_only=True):
    """A port of a Service: its name or its number."""

    name: Annotated[str, Meta(max_length=63)] = ""
    number: Annotated[int, Meta(ge=0, le=65535)] = 0


class IngressServiceBackend(Element, frozen=True, kw_only=True):
    """A Service of the Ingress's namespace."""

    name: ObjectName
    port: ServiceBackendPort


class TypedLocalObjectReference(Element, frozen=True, kw_only=True):
    """Any object of the Ingress's namespace; edgefast serves no such backend."""

    api_group: str | None = None
    kind: str
    name: ObjectName


class IngressBackend(Element, frozen=True, kw_only=True):
    """Where requests go."""

    service: IngressServiceBackend | None = None
    resource: TypedLocalObjectReference | None = None


class HTTPIngressPath(Element, frozen=True, kw_only=True):
    """A path with its backend."""

    path: Annotated[
        str,
        Meta(
            max_length=MAX_PATH,
            pattern=r"^\Z|^/",
            extra=expects("an absolute path such as /shop"),
        ),
    ] = ""
    path_type: PathType = "ImplementationSpecific"
    backend: IngressBackend


class HTTPIngressRuleValue(Element, frozen=True, kw_only=True):
    """Paths of one host."""

    paths: Annotated[tuple[HTTPIngressPath, ...], Meta(min_length=1, max_length=MAX_PATHS)]


class IngressRule(Element, frozen=True, kw_only=True):
    """A host; an absent host means all hosts that no Ingress names."""

    host: Annotated[
        str,
        Meta(
            max_length=253,
            pattern=rf"^\Z|^(\*\.)?{SUBDOMAIN}\Z",
            extra=expects("a lower-case DNS name such as shop.example.com or *.example.com"),
        ),
    ] = ""
    http: HTTPIngressRuleValue | None = None


class IngressTLS(Element, frozen=True, kw_only=True):
    """A certificate and the hosts that use it; no Secret means the default certificate."""

    hosts: Annotated[tuple[str, ...], Meta(max_length=MAX_RULES)] = ()
    secret_name: Annotated[str, Meta(max_length=253)] = ""


class IngressSpec(Element, frozen=True, kw_only=True):
    """`spec` of an Ingress."""

    ingress_class_name: Annotated[str, Meta(max_length=253)] | None = None
    default_backend: IngressBackend | None = None
    tls: Annotated[tuple[IngressTLS, ...], Meta(max_length=MAX_CERTIFICATES)] = ()
    rules: Annotated[tuple[IngressRule, ...], Meta(max_length=MAX_RULES)] = ()


class Ingress(Resource, frozen=True, kw_only=True):
    """A namespaced set of hosts and paths."""

    metadata: ObjectMeta
    spec: IngressSpec = IngressSpec()
    #: Written by the decoder and never by a document: the Ingress has a mistake, and its locations answer 503.
    closed: Closed | None = None
