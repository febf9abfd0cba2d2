"""Ingress references: the Secrets and ConfigMaps that Ingresses of served classes refer to.

In: a snapshot and the settings. Out: their names: certificates, passwords, headers of responses, the default certificate and the
ConfigMap of EdgeGateway `ingress`. An Ingress names objects of its own namespace only. After one changed Ingress, only that one
is read again. Pure.
Source: edgefast/translate/ingress/lookup.py (what the translation reads).
Must never: follow a reference of an Ingress of another controller.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from controller.kube.fetch import Reference
from edgefast.api.ingress.ingress import Ingress
from edgefast.api.snapshot import Key, Snapshot
from edgefast.collections.sorted_map import EMPTY, find_unlike
from edgefast.translate.ingress.classes import Classes, find_classes
from edgefast.translate.ingress.values import PREFIX
from edgefast.translate.settings import Settings

__all__ = ["IngressReferences"]

#: Annotations with the name of an object, and its kind.
_NAMING = (("auth-secret", "Secret"), ("custom-headers", "ConfigMap"))


class IngressReferences:
    """Finds the references, and remembers those of the last snapshot."""

    def __init__(self) -> None:
        self._settings: Settings | None = None
        self._classes: object = None
        self._namespaces: object = None
        self._ingresses: Mapping[Key, Ingress] = EMPTY
        self._ours = Classes(names=frozenset(), default=False)
        self._counts: Counter[Reference] = Counter()
        self._found: frozenset[Reference] = frozenset()

    def find(self, snapshot: Snapshot, settings: Settings) -> frozenset[Reference]:
        """Return (kind, namespace, name) of each object; the same set when nothing has changed."""
        if not settings.ingress.enabled:
            return frozenset()
        if self._is_other(snapshot, settings):
            self._settings, self._classes = settings, snapshot.ingress_classes
            self._namespaces = snapshot.namespaces
            self._ours = find_classes(snapshot, settings.ingress, standalone=False)
            self._counts = Counter(_of_settings(settings))
            gone: Mapping[Key, Ingress] = {}
            come: Mapping[Key, Ingress] = snapshot.ingresses
        else:
            gone, come = find_unlike(self._ingresses, snapshot.ingresses)
        self._ingresses = snapshot.ingresses
        for ingress in gone.values():
            self._counts.subtract(self._of(ingress, snapshot, settings))
        for ingress in come.values():
            self._counts.update(self._of(ingress, snapshot, settings))
        for ingress in gone.values():
            for one in self._of(ingress, snapshot, settings):
                if not self._counts[one]:
                    del self._counts[one]
        if self._counts.keys() != self._found:
            self._found = frozenset(self._counts)
        return self._found

    def _is_other(self, snapshot: Snapshot, settings: Settings) -> bool:
        """Tell whether anything but the Ingresses differs."""
        labels = settings.watch_selector is not None
        return (
            self._settings != settings
            or self._classes is not snapshot.ingress_classes
            or (labels and self._namespaces is not snapshot.namespaces)
        )

    def _of(self, ingress: Ingress, snapshot: Snapshot, settings: Settings) -> Iterator[Reference]:
        namespace = ingress.metadata.namespace
        found = snapshot.namespaces.get(("", namespace))
        labels = found.metadata.labels if found else {}
        if not self._ours.has(ingress) or not settings.watches(namespace, labels):
            return
        for entry in ingress.spec.tls:
            if entry.secret_name:
                yield ("Secret", namespace, entry.secret_name)
        for annotation, kind in _NAMING:
            given = ingress.metadata.annotations.get(PREFIX + annotation, "").strip()
            place, _, name = given.rpartition("/")
            if name and place in ("", namespace):
                yield (kind, namespace, name)


def _of_settings(settings: Settings) -> Iterator[Reference]:
    for kind, text in (
        ("ConfigMap", settings.ingress.config_map),
        ("Secret", settings.ingress.certificate),
        ("Secret", settings.ingress.additional_certificate),
    ):
        namespace, _, name = text.partition("/")
        if name:
            yield (kind, namespace, name)
