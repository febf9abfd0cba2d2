"""The objects of a cluster, found by kind and name, and the Ingresses that are ours in the order of ownership."""

from __future__ import annotations

import base64
from collections.abc import Iterable
from typing import Any

Object = dict[str, Any]

CONTROLLER = "k8s.io/ingress-nginx"
PREFIX = "nginx.ingress.kubernetes.io/"
CLASS_ANNOTATION = "kubernetes.io/ingress.class"
DEFAULT_CLASS = "ingressclass.kubernetes.io/is-default-class"
CONFIGURATION = "ingress-nginx-controller"  # name of the controller's ConfigMap


def name_of(item: Object) -> str:
    """namespace/name."""
    return f"{item['metadata'].get('namespace', 'default')}/{item['metadata']['name']}"


class Objects:
    """An index of objects."""

    def __init__(self, items: Iterable[Object]) -> None:
        self.items = list(items)
        self._found = {(item["kind"], name_of(item)): item for item in self.items}
        self.slices = [item for item in self.items if item["kind"] == "EndpointSlice"]
        self.settings: dict[str, str] = {}
        for item in self.items:
            if item["kind"] == "ConfigMap" and item["metadata"]["name"] == CONFIGURATION:
                self.settings = item.get("data") or {}

    def find(self, kind: str, name: str) -> Object | None:
        """An object by kind and namespace/name."""
        return self._found.get((kind, name))

    def setting(self, name: str, default: str = "") -> str:
        """A value of the controller's ConfigMap."""
        return self.settings.get(name, default)

    def secret_value(self, name: str, key: str) -> bytes | None:
        """A decoded value of a Secret."""
        secret = self.find("Secret", name)
        if secret is None:
            return None
        if key in (secret.get("stringData") or {}):
            return secret["stringData"][key].encode()
        value = (secret.get("data") or {}).get(key)
        return None if value is None else base64.b64decode(value)

    def ingresses(self) -> list[Object]:
        """The oldest Ingress wins; at the same second the greater `namespace/name` wins."""
        ours = [one for one in self.items if one["kind"] == "Ingress" and self._is_ours(one)]
        ours.sort(key=name_of, reverse=True)
        ours.sort(key=lambda one: str(one["metadata"].get("creationTimestamp", "")))
        return ours

    def _is_ours(self, ingress: Object) -> bool:
        """The field ingressClassName names a class of this controller; without the field, the old annotation is `nginx`.

        Without both, a default class of this controller takes the Ingress (the API server writes the field at creation).
        """
        classes = [
            one
            for one in self.items
            if one["kind"] == "IngressClass" and one["spec"].get("controller") == CONTROLLER
        ]
        named = ingress["spec"].get("ingressClassName")
        if named is not None:
            return any(one["metadata"]["name"] == named for one in classes)
        annotations = ingress["metadata"].get("annotations") or {}
        if CLASS_ANNOTATION in annotations:
            return bool(annotations[CLASS_ANNOTATION] == "nginx")
        return any(
            (one["metadata"].get("annotations") or {}).get(DEFAULT_CLASS) == "true"
            for one in classes
        )

    def service_port(self, service: str, port: str) -> Object | None:
        """A backend port may be the number, the name or the targetPort of a port of the Service; the first one wins."""
        found = self.find("Service", service)
        for one in (found or {"spec": {}})["spec"].get("ports") or []:
            if port in (str(one["port"]), str(one.get("targetPort", 0)), one.get("name", "")):
                return dict(one)
        return None

    def has_endpoints(self, service: str, port: str) -> bool:
        """Some ready address of an EndpointSlice of the Service has that port."""
        found = self.service_port(service, port)
        if found is None:
            return False
        for one in self.slices:
            labels = one["metadata"].get("labels") or {}
            space = one["metadata"].get("namespace", "default")
            if f"{space}/{labels.get('kubernetes.io/service-name')}" != service:
                continue
            if not any(
                entry.get("name", "") in ("", found.get("name", "")) for entry in one["ports"]
            ):
                continue
            if any(
                (entry.get("conditions") or {}).get("ready", True) is not False
                for entry in one["endpoints"]
            ):
                return True
        return False
