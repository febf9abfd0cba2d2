"""Fields: annotated scalar types that the resource models share: names, hostnames, ports, durations.

In: nothing. Out: `Annotated` aliases with pattern, length and range in their `Meta`, and the two
Struct roots. Patterns end in `\\Z` because Python's `$` would accept a trailing newline; the schema
generator writes `$`. Limits are those of the Gateway API v1.6 CRDs (`shared_types.go`).
Must never: hold a rule that needs more than one field (see `validation`).
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

import msgspec
from msgspec import Meta

from edgefast.api.model.units import SIZE_PATTERN
from edgefast.api.model.unsupported_fields import UnsupportedField

_LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"{_LABEL}(\.{_LABEL})*"
_TOKEN = r"[A-Za-z0-9!#$%&'*+\-.^_\x60|~]+"


class Element(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    rename="camel",
    forbid_unknown_fields=True,
    omit_defaults=True,
    gc=False,
):
    """Root of every part of an object: unknown fields are mistakes."""

    #: Whether what it says may be a secret, which no message shows.
    hides_values: ClassVar[bool] = False


class Resource(Element, frozen=True, kw_only=True, forbid_unknown_fields=False):
    """Root of every object; the decoder reads `apiVersion` and `kind`, nobody reads `status`."""

    #: Known, but no fields of the model.
    unread: ClassVar[frozenset[str]] = frozenset({"apiVersion", "kind", "status"})
    #: Written by the decoder and never by a document: `shape.py` and the decoders leave it out.
    unserved: tuple[UnsupportedField, ...] = ()


def expects(words: str) -> dict[str, Any]:
    """Say in words what a pattern asks for; a problem's message shows them."""
    return {"expects": words}


def refuses(*words: str) -> dict[str, Any]:
    """Mark words of the API that translation refuses, or, without words, a whole field: no list of what is supported has them."""
    return {"refuses": words}


ObjectName = Annotated[str, Meta(min_length=1, max_length=253)]
DNSLabel = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=63,
        pattern=rf"^{_LABEL}\Z",
        extra=expects("lower-case letters, digits and -, such as web-1"),
    ),
]
DNSSubdomain = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=253,
        pattern=rf"^{_SUBDOMAIN}\Z",
        extra=expects("lower-case letters, digits, - and ., such as shop.example.com"),
    ),
]
Namespace = DNSLabel
SectionName = DNSSubdomain
Group = Annotated[
    str,
    Meta(
        max_length=253,
        pattern=rf"^\Z|^{_SUBDOMAIN}\Z",
        extra=expects('an API group such as gateway.edge.io, or "" for core'),
    ),
]
Kind = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=63,
        pattern=r"^[a-zA-Z]([-a-zA-Z0-9]*[a-zA-Z0-9])?\Z",
        extra=expects("a kind such as Service"),
    ),
]
Hostname = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=253,
        pattern=rf"^(\*\.)?{_SUBDOMAIN}\Z",
        extra=expects("a lower-case DNS name such as shop.example.com or *.example.com"),
    ),
]
PreciseHostname = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=253,
        pattern=rf"^{_SUBDOMAIN}\Z",
        extra=expects("a lower-case DNS name without wildcard such as shop.example.com"),
    ),
]
PortNumber = Annotated[int, Meta(ge=1, le=65535)]
HTTPHeaderName = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=256,
        pattern=rf"^{_TOKEN}\Z",
        extra=expects("a token of RFC 9110 such as x-version"),
    ),
]
#: The CRD's pattern with the ambiguity taken out: its nested repetition is exponential in `re`.
HTTPHeaderValue = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=4096,
        pattern=r"^[!-~]+([\t ][!-~]+)*\Z",
        extra=expects("visible ASCII with single spaces or tabs between words"),
    ),
]
Duration = Annotated[
    str,
    Meta(
        pattern=r"^([0-9]{1,5}(h|m|s|ms)){1,4}\Z",
        extra=expects("a duration such as 10s, 500ms or 1h30m"),
    ),
]
GatewayController = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=253,
        pattern=rf"^{_SUBDOMAIN}\/[A-Za-z0-9\/\-._~%!$&'()*+,;=:]+\Z",
        extra=expects("a domain and a path such as gateway.edge.io/gatewayclass-controller"),
    ),
]
ListenerProtocol = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=255,
        pattern=rf"^[a-zA-Z0-9]([-a-zA-Z0-9]*[a-zA-Z0-9])?\Z|^{_SUBDOMAIN}\/[A-Za-z0-9]+\Z",
        extra=expects("HTTP or HTTPS"),
    ),
]
AnnotationValue = Annotated[str, Meta(max_length=4096)]
LABEL_VALUE_PATTERN = r"^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?\Z"
LABEL_VALUE_MOST = 63
LabelValue = Annotated[
    str,
    Meta(
        max_length=LABEL_VALUE_MOST,
        pattern=LABEL_VALUE_PATTERN,
        extra=expects("a label value: letters, digits, -, _ and ."),
    ),
]
#: Bytes as a number or with a unit; `size.parse_size` reads it.
Size = (
    Annotated[int, Meta(ge=1, le=2**63 - 1)]
    | Annotated[
        str, Meta(pattern=SIZE_PATTERN, extra=expects("a size such as 32768, 32KiB or 10Mi"))
    ]
)
CIDR = Annotated[
    str,
    Meta(
        min_length=3,
        max_length=49,
        pattern=r"^[0-9A-Fa-f.:]+/[0-9]{1,3}\Z",
        extra=expects("a range of addresses such as 10.0.0.0/8 or fd00::/8"),
    ),
]
#: 0 to 100, fractions allowed.
Percent = Annotated[int, Meta(ge=0, le=100)] | Annotated[float, Meta(ge=0, le=100)]
PodCount = Annotated[int, Meta(ge=0, le=10000)]
PodCountOrPercent = (
    PodCount
    | Annotated[
        str, Meta(pattern=r"^[0-9]{1,3}%\Z", extra=expects("a number or a percentage such as 50%"))
    ]
)
#: A JSON object that is handed on as it is (pod affinity, metrics of an autoscaler, ...).
FreeObject = dict[str, Any]


def by_keys(*names: str) -> dict[str, Any]:
    """Mark a list as a map: entries are unique by these fields (`x-kubernetes-list-map-keys`)."""
    return {"list_map_keys": names}


#: Marks a list whose entries must all differ (`x-kubernetes-list-type: set`).
AS_SET: dict[str, Any] = {"list_set": True}
