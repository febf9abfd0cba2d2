"""Classes: which Ingresses are edgefast's.

In: IngressClasses, the names that the user gave. Out: `Classes`. On the command line a class is ours by its name
(`--ingress-class`), else by its controller. In a cluster it is ours by its controller, or if EdgeGateway `ingress.adoptClasses`
names the class or its controller. `spec.ingressClassName` has priority over the annotation kubernetes.io/ingress.class, as in ingress-nginx.
Source: ingress-nginx internal/ingress/controller/store, `GetIngressClass`.
Must never: serve an Ingress of another class: two controllers run side by side during a migration.
"""

from __future__ import annotations

import msgspec

from edgefast.api.ingress.ingress import CLASS_ANNOTATION, Ingress
from edgefast.api.ingress.ingressclass import DEFAULT_CLASS
from edgefast.api.snapshot import Snapshot
from edgefast.translate.settings import IngressSettings


class Classes(msgspec.Struct, frozen=True, kw_only=True):
    """The classes that are ours; `default`: Ingresses without a class are ours, too."""

    names: frozenset[str]
    default: bool

    def has(self, ingress: Ingress) -> bool:
        """Tell whether an Ingress is ours."""
        name = class_of(ingress)
        return self.default if name is None else name in self.names


def class_of(ingress: Ingress) -> str | None:
    """Return the class that an Ingress names, None if it names none."""
    named = ingress.spec.ingress_class_name
    return ingress.metadata.annotations.get(CLASS_ANNOTATION) if named is None else named


def find_classes(snapshot: Snapshot, settings: IngressSettings, *, standalone: bool) -> Classes:
    """Return the classes that are ours."""
    names, default = set(settings.classes), False
    by_name = standalone and bool(settings.classes)
    controllers = frozenset(() if by_name else settings.controllers)
    for _, name in snapshot.ingress_classes:
        one = snapshot.ingress_classes["", name]
        if name in settings.classes or one.spec.controller in controllers:
            names.add(name)
            default = default or one.metadata.annotations.get(DEFAULT_CLASS) == "true"
    return Classes(names=frozenset(names), default=default)
