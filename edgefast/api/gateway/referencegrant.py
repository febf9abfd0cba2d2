"""ReferenceGrant: a namespace's permission for references from others.

In: `gateway.networking.k8s.io/v1` or `v1beta1` documents. Out: `ReferenceGrant`.
Source: Gateway API v1.6 `referencegrant_types.go`. It is in the namespace of the target.
Must never: decide a reference; translate does, with both ends.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, field

from edgefast.api.model.fields import (
    Element,
    Group,
    Kind,
    Namespace,
    ObjectName,
    Resource,
)
from edgefast.api.model.meta import ObjectMeta


class ReferenceGrantFrom(Element, frozen=True, kw_only=True):
    """A kind and namespace that may refer."""

    group: Group
    kind: Kind
    namespace: Namespace


class ReferenceGrantTo(Element, frozen=True, kw_only=True):
    """A kind that may be referred to, all of its objects or one."""

    group: Group
    kind: Kind
    name: ObjectName | None = None


class ReferenceGrantSpec(Element, frozen=True, kw_only=True):
    """Each of `from_` may refer to each of `to`."""

    from_: Annotated[tuple[ReferenceGrantFrom, ...], Meta(min_length=1, max_length=16)] = field(
        name="from"
    )
    to: Annotated[tuple[ReferenceGrantTo, ...], Meta(min_length=1, max_length=16)]


class ReferenceGrant(Resource, frozen=True, kw_only=True):
    """A namespaced permission."""

    metadata: ObjectMeta
    spec: ReferenceGrantSpec
