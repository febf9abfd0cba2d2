"""edgefast whose policies ask for passwords and tokens beside the plain route of a scenario, all in one process.

In: a `Setup`, the port of whoever publishes an issuer's keys. Out: objects and a command line, as edgefast.py. /flood/<kind> is one of KINDS; whoever gets in is
redirected, so that a flood that is let in costs no backend. /get has no policy; what is under /flood and has no name is 404.
"""

import json
from typing import Any

from bench.credentials import AUDIENCE, ISSUER, make_htpasswd, make_key_set
from bench.objects import EDGE_API, GATEWAY_API, NAMESPACE, SERVICE_PORT
from bench.peers.edgefast import Edgefast
from bench.peers.peer import Setup

KINDS = ("bcrypt", "apr1", "tokens", "fetched", "denied")
_ISSUER = "issuer"  # the Service of whoever publishes keys


class FloodedEdgefast(Edgefast):
    """Has a policy for each kind."""

    def __init__(self, keys_port: int) -> None:
        self._keys_port = keys_port

    def render(self, setup: Setup) -> list[str]:
        """The plain objects, and one file more."""
        argv = super().render(setup)
        items = [_make_route(setup.scenario.make_route(0).host)]
        items += [_make_policy(kind) for kind in KINDS]
        items += [
            _make_users("bcrypt", False),
            _make_users("apr1", True),
            *_make_issuer(self._keys_port),
        ]
        path = setup.folder / "objects" / "floods.json"
        path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
        return argv


def _make_policy(kind: str) -> dict[str, Any]:
    target = {"group": GATEWAY_API, "kind": "HTTPRoute", "name": "floods", "sectionName": kind}
    provider: dict[str, Any] = {"name": "login", "issuer": ISSUER, "audiences": [AUDIENCE]}
    local = {"localJWKS": {"inline": make_key_set()}}
    fetched = {
        "remoteJWKS": {
            "uri": f"http://{_ISSUER}.{NAMESPACE}.svc/keys",
            "backendRefs": [{"name": _ISSUER, "port": SERVICE_PORT}],
        }
    }
    units: dict[str, Any] = {
        "bcrypt": {"basicAuth": {"users": {"name": "users-bcrypt"}}},
        "apr1": {"basicAuth": {"users": {"name": "users-apr1"}}},
        "tokens": {"jwt": {"providers": [provider | local]}},
        "fetched": {"jwt": {"providers": [provider | fetched]}},
        "denied": {
            "authorization": {
                "rules": [{"action": "Allow", "principal": {"clientCIDRs": ["192.0.2.0/24"]}}]
            }
        },
    }
    return {
        "apiVersion": f"{EDGE_API}/v1alpha1",
        "kind": "SecurityPolicy",
        "metadata": {"name": f"flood-{kind}", "namespace": NAMESPACE},
        "spec": {"targetRefs": [target], **units[kind]},
    }


def _make_users(name: str, apr1: bool) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": f"users-{name}", "namespace": NAMESPACE},
        "stringData": {".htpasswd": make_htpasswd(apr1)},
    }


def _make_issuer(port: int) -> list[dict[str, Any]]:
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": _ISSUER, "namespace": NAMESPACE},
        "spec": {"ports": [{"name": "http", "port": SERVICE_PORT}]},
    }
    labels = {"kubernetes.io/service-name": _ISSUER}
    slice_ = {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {"name": f"{_ISSUER}-1", "namespace": NAMESPACE, "labels": labels},
        "addressType": "IPv4",
        "ports": [{"name": "http", "port": port}],
        "endpoints": [{"addresses": ["127.0.0.1"], "conditions": {"ready": True}}],
    }
    return [service, slice_]


def _make_route(host: str) -> dict[str, Any]:
    def make_rule(kind: str) -> dict[str, Any]:
        redirect = {
            "type": "RequestRedirect",
            "requestRedirect": {"path": {"type": "ReplaceFullPath", "replaceFullPath": "/"}},
        }
        return {
            "name": kind,
            "matches": [{"path": {"type": "PathPrefix", "value": f"/flood/{kind}"}}],
            "filters": [redirect],
        }

    return {
        "apiVersion": f"{GATEWAY_API}/v1",
        "kind": "HTTPRoute",
        "metadata": {"name": "floods", "namespace": NAMESPACE},
        "spec": {
            "parentRefs": [{"name": "bench"}],
            "hostnames": [host],
            "rules": [make_rule(kind) for kind in KINDS],
        },
    }
