"""Namespace: the labels that selectors read.

In: core `v1` documents, or nothing (files need not define their namespaces).
Out: `Namespace` with the label `kubernetes.io/metadata.name`, as the API server sets it.
Must never: be required; `implicit_namespace` replaces an undefined one.
"""

from __future__ import annotations

import msgspec
from msgspec import field

from edgefast.api.model.fail_closed import Closed
from edgefast.api.model.fields import FreeObject, Resource
from edgefast.api.model.meta import ObjectMeta

NAME_LABEL = "kubernetes.io/metadata.name"


class Namespace(Resource, frozen=True, kw_only=True):
    """A cluster-scoped namespace."""

    metadata: ObjectMeta
    spec: FreeObject = field(default_factory=dict)
    #: Written by the decoder and never by a document: it only stands for one with a mistake.
    closed: Closed | None = None


def implicit_namespace(name: str) -> Namespace:
    """Return the Namespace that the API server would show for a bare name."""
    return Namespace(metadata=ObjectMeta(name=name, labels={NAME_LABEL: name}))


def label_namespace(namespace: Namespace) -> Namespace:
    """Return the namespace with its name label, itself when it already has it."""
    name = namespace.metadata.name
    if namespace.metadata.labels.get(NAME_LABEL) == name:
        return namespace
    labels = {**namespace.metadata.labels, NAME_LABEL: name}
    return msgspec.structs.replace(
        namespace, metadata=msgspec.structs.replace(namespace.metadata, labels=labels)
    )
