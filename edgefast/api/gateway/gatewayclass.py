"""GatewayClass: which controller serves the Gateways of a class, and with which EdgeProxy.

In: `gateway.networking.k8s.io/v1` or `v1beta1` documents. Out: `GatewayClass`.
Source: Gateway API v1.6 `gatewayclass_types.go`.
Must never: resolve `parameters_ref`; that is translate's.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from edgefast.api.model.fail_closed import Closed
from edgefast.api.model.fields import Element, GatewayController, Resource
from edgefast.api.model.meta import ObjectMeta
from edgefast.api.model.reference import ParametersReference


class GatewayClassSpec(Element, frozen=True, kw_only=True):
    """`spec` of a GatewayClass."""

    controller_name: GatewayController
    parameters_ref: ParametersReference | None = None
    description: Annotated[str, Meta(max_length=64)] | None = None


class GatewayClass(Resource, frozen=True, kw_only=True):
    """A cluster-scoped class of Gateways."""

    metadata: ObjectMeta
    spec: GatewayClassSpec
    #: Written by the decoder and never by a document: it only stands for one with a mistake.
    closed: Closed | None = None
