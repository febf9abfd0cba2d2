"""Documents: one Ingress and what it needs, for tests of single parts of a conversion."""

from __future__ import annotations

from typing import Any

from ingress.generate import PREFIX
from ingress.standard_objects import standard_objects

#: Classes, Services with endpoints and Secrets of the namespaces shop and web.
SERVICE = standard_objects()


def ingress(
    path: str,
    annotations: dict[str, str],
    *,
    name: str = "one",
    service: str = "one",
    host: str = "a.test",
    tls: str = "",
) -> dict[str, Any]:
    """Return an Ingress of namespace shop with one path; `tls`: the name of its Secret."""
    rule: dict[str, Any] = {
        "http": {
            "paths": [
                {
                    "path": path,
                    "pathType": "ImplementationSpecific",
                    "backend": {"service": {"name": service, "port": {"number": 80}}},
                }
            ]
        }
    }
    spec: dict[str, Any] = {
        "ingressClassName": "nginx",
        "rules": [{"host": host, **rule} if host else rule],
    }
    if tls:
        spec["tls"] = [{"hosts": [host], "secretName": tls}]
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "Ingress",
        "metadata": {
            "namespace": "shop",
            "name": name,
            "annotations": {PREFIX + key: value for key, value in annotations.items()},
        },
        "spec": spec,
    }
