"""ListenerSet: more listeners for a Gateway, from another team's object.

In: `gateway.networking.k8s.io/v1` documents. Out: `ListenerSet`.
Source: Gateway API v1.6 `listenerset_types.go`.
Must never: decide precedence between a Gateway's listeners and these.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from edgefast.api.gateway.listener import Listener
from edgefast.api.model.fail_closed import Closed
from edgefast.api.model.fields import Element, Resource, by_keys
from edgefast.api.model.meta import ObjectMeta
from edgefast.api.model.reference import ParentGatewayReference


class ListenerSetSpec(Element, frozen=True, kw_only=True):
    """`spec` of a ListenerSet."""

    parent_ref: ParentGatewayReference
    listeners: Annotated[
        tuple[Listener, ...], Meta(min_length=1, max_length=64, extra=by_keys("name"))
    ]


class ListenerSet(Resource, frozen=True, kw_only=True):
    """A namespaced set of listeners that attach to one Gateway."""

    metadata: ObjectMeta
    spec: ListenerSetSpec
    #: Written by the decoder and never by a document: it only keeps the places of one with a mistake closed.
    closed: Closed | None = None
