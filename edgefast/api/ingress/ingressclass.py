"""IngressClass: which controller serves the Ingresses of a class.

In: `networking.k8s.io/v1` documents. Out: `IngressClass`.
Source: Kubernetes API reference, IngressClass v1.
Must never: decide which classes edgefast serves; edgefast/translate/ingress/classes.py does.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from edgefast.api.model.fields import Element, ObjectName, Resource
from edgefast.api.model.meta import ObjectMeta

#: Marks the class of Ingresses that name none.
DEFAULT_CLASS = "ingressclass.kubernetes.io/is-default-class"


class IngressClassParameters(Element, frozen=True, kw_only=True):
    """An object with settings of the class; edgefast reads none."""

    api_group: str | None = None
    kind: str
    name: ObjectName
    namespace: str | None = None
    scope: str | None = None


class IngressClassSpec(Element, frozen=True, kw_only=True):
    """`spec` of an IngressClass."""

    controller: Annotated[str, Meta(max_length=250)] = ""
    parameters: IngressClassParameters | None = None


class IngressClass(Resource, frozen=True, kw_only=True):
    """A cluster-scoped class of Ingresses."""

    metadata: ObjectMeta
    spec: IngressClassSpec = IngressClassSpec()
