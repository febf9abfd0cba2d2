"""Field mapping: a policy field or an annotation of another project, and its equivalent in edgefast.

In: nothing. Out: the Structs of the tables beside this file (envoy_gateway.py, nginx_gateway.py,
kgateway.py, traefik.py, ingress_nginx.py).
Must never: name a field that edgefast does not have; a test looks each of them up.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

#: here: `said` is our kind and field; later: not yet; never: `said` is why not.
Place = Literal["here", "later", "never"]


class FieldMapping(msgspec.Struct, frozen=True):
    """One top-level field of `spec`, or one annotation."""

    place: Place
    said: str = ""


class ForeignKind(msgspec.Struct, frozen=True):
    """One kind: its fields, and what people need to know of it as a whole."""

    kind: str
    fields: Mapping[str, FieldMapping]
    about: str = ""  # in the page, before its fields
    # Fields below those of `spec`, of which the whole is here: "authorization.rules[].cel".
    inner: Mapping[str, FieldMapping] = {}


class Annotations(msgspec.Struct, frozen=True):
    """What objects say by annotations of one domain, by the names behind it."""

    domain: str  # "nginx.ingress.kubernetes.io"
    access_policies: Mapping[str, FieldMapping]  # those that decide who gets in
    others: Mapping[str, FieldMapping]


class Project(msgspec.Struct, frozen=True):
    """One project."""

    title: str  # "Envoy Gateway"
    groups: tuple[str, ...]
    version: str  # of the types that were read
    kinds: tuple[ForeignKind, ...]
    about: str = ""
    annotations: Annotations | None = None


def supported(message: str) -> FieldMapping:
    """Return that `message` does it."""
    return FieldMapping("here", message)


def planned(message: str = "") -> FieldMapping:
    """Return that nothing does it yet; `message` is what can be done meanwhile."""
    return FieldMapping("later", message)


def unsupported(message: str) -> FieldMapping:
    """Return why nothing does it."""
    return FieldMapping("never", message)
