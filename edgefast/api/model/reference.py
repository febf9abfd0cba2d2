"""Reference: references from one object to another, as the Gateway API names them.

In: `parentRefs`, `backendRef`, `certificateRefs`, `extensionRef`, ... of a document.
Out: Structs with the CRD's defaults for group and kind. Nothing is looked up here.
Must never: default a namespace; an absent one means "the referrer's" and only translate knows it.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from edgefast.api.model.fields import (
    Element,
    Group,
    Kind,
    Namespace,
    ObjectName,
    PortNumber,
    SectionName,
)

GATEWAY_GROUP = "gateway.networking.k8s.io"


class ParentReference(Element, frozen=True, kw_only=True):
    """A route's parent: a Gateway, or a ListenerSet."""

    group: Group = GATEWAY_GROUP
    kind: Kind = "Gateway"
    namespace: Namespace | None = None
    name: ObjectName
    section_name: SectionName | None = None
    port: PortNumber | None = None


class ParentGatewayReference(Element, frozen=True, kw_only=True):
    """The Gateway that a ListenerSet adds listeners to."""

    group: Group = GATEWAY_GROUP
    kind: Kind = "Gateway"
    namespace: Namespace | None = None
    name: ObjectName


class BackendObjectReference(Element, frozen=True, kw_only=True):
    """A Service (port required) or a Backend."""

    group: Group = ""
    kind: Kind = "Service"
    name: ObjectName
    namespace: Namespace | None = None
    port: PortNumber | None = None


class BackendRef(BackendObjectReference, frozen=True, kw_only=True):
    """The same with its share of the traffic."""

    weight: Annotated[int, Meta(ge=0, le=1000000)] = 1


class SecretObjectReference(Element, frozen=True, kw_only=True):
    """A Secret, perhaps in another namespace (then a ReferenceGrant is needed)."""

    group: Group = ""
    kind: Kind = "Secret"
    name: ObjectName
    namespace: Namespace | None = None


class ObjectReference(Element, frozen=True, kw_only=True):
    """Any object, perhaps in another namespace."""

    group: Group
    kind: Kind
    name: ObjectName
    namespace: Namespace | None = None


class LocalObjectReference(Element, frozen=True, kw_only=True):
    """An object of the referrer's own namespace."""

    group: Group
    kind: Kind
    name: ObjectName


class LocalParametersReference(Element, frozen=True, kw_only=True):
    """The EdgeProxy of a Gateway's `infrastructure`."""

    group: Group
    kind: Kind
    name: ObjectName


class ParametersReference(Element, frozen=True, kw_only=True):
    """The EdgeProxy of a GatewayClass."""

    group: Group
    kind: Kind
    name: ObjectName
    namespace: Namespace | None = None


class LocalPolicyTargetReferenceWithSectionName(Element, frozen=True, kw_only=True):
    """What a policy applies to; `section_name` is a port name of a Service."""

    group: Group
    kind: Kind
    name: ObjectName
    section_name: SectionName | None = None
