"""Standard objects: classes, Services with endpoints, and Secrets that the Ingresses of generate.py and of cases refer to.

In: namespaces and names. Out: objects as YAML gives them; the keys of certificates differ from run to run.
"""

from __future__ import annotations

import base64
import functools
import hashlib
from typing import Any

from proxy.pki import Authority, Pair

Object = dict[str, Any]

SPACES = ("shop", "web")
SERVICES = ("one", "two", "three", "canary", "pages", "empty")
#: Of user and other, as htpasswd has it (-s).
_SHA = "{SHA}" + base64.b64encode(hashlib.sha1(b"secret").digest()).decode()
_AUTHORITY = Authority()


@functools.cache
def pair(secret: str, *names: str) -> Pair:
    """The certificate of a Secret for these names."""
    return _AUTHORITY.issue(*names, common=secret)


def tls_secret(space: str, name: str, *names: str) -> Object:
    """A TLS Secret."""
    made = pair(f"{space}/{name}", *names)
    data = {"tls.crt": made.certificate, "tls.key": made.key}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "type": "kubernetes.io/tls",
        "metadata": {"namespace": space, "name": name},
        "data": {key: base64.b64encode(value).decode() for key, value in data.items()},
    }


def service(space: str, name: str) -> Object:
    """A Service with two ports."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"namespace": space, "name": name},
        "spec": {
            "ports": [
                {"name": "http", "port": 80, "targetPort": 8080},
                {"name": "other", "port": 81, "targetPort": "web"},
            ]
        },
    }


def endpoints(space: str, name: str, *, ready: bool = True) -> Object:
    """Endpoints of a Service."""
    return {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "addressType": "IPv4",
        "metadata": {
            "namespace": space,
            "name": f"{name}-1",
            "labels": {"kubernetes.io/service-name": name},
        },
        "ports": [
            {"name": "http", "port": 8080, "protocol": "TCP"},
            {"name": "other", "port": 8081, "protocol": "TCP"},
        ],
        "endpoints": [{"addresses": ["127.0.0.9"], "conditions": {"ready": ready}}],
    }


def standard_objects() -> list[Object]:
    """Classes, Services with endpoints, and Secrets that Ingresses refer to."""
    found: list[Object] = [
        {
            "apiVersion": "networking.k8s.io/v1",
            "kind": "IngressClass",
            "metadata": {"name": name},
            "spec": {"controller": controller},
        }
        for name, controller in (("nginx", "k8s.io/ingress-nginx"), ("other", "example.com/other"))
    ]
    found.append(
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"namespace": "web", "name": "headers"},
            "data": {"X-Custom-A": "1", "X-Custom-B": "$host"},
        }
    )
    for space in SPACES:
        found += [service(space, name) for name in SERVICES]
        found += [endpoints(space, name, ready=name != "empty") for name in SERVICES]
        found += [
            tls_secret(space, "exact", "a.test", "b.test"),
            tls_secret(space, "wildcard", "*.w.test", "*.alias.test"),
            tls_secret(space, "www", "a.test", "www.a.test", "c.test", "www.c.test"),
            {
                "apiVersion": "v1",
                "kind": "Secret",
                "metadata": {"namespace": space, "name": "users"},
                "stringData": {"auth": f"user:{_SHA}\nother:{_SHA}\n"},
            },
            {
                "apiVersion": "v1",
                "kind": "Secret",
                "metadata": {"namespace": space, "name": "map"},
                "stringData": {"user": _SHA},
            },
        ]
    return found
