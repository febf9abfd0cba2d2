"""Random Ingresses that meet each other: hosts, aliases, canaries, certificates, passwords and Services that come and go.

In: a seed. Out: snapshots, each a few changes after the one before.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import cache
from typing import Any

from edgefast.api.decode.decode import decode_documents
from edgefast.api.kinds import Object, ref_of
from edgefast.api.snapshot import Snapshot
from edgefast.diagnostics.problem import ObjectRef
from edgefast.translate import Settings
from edgefast.translate.settings import FleetState, IngressSettings
from tests.proxy.pki import Authority

_HOSTS = (
    *(f"h{number}.test" for number in range(6)),
    "*.test",
    "www.h1.test",
    "h2.sub.test",
    "*.sub.test",
    "",
)
_NAMES = ("h1.test", "*.test", "*.sub.test")
_CLASSES = ("nginx", "nginx", "nginx", "nginx", "other", "")
_ANNOTATIONS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("proxy-body-size", ("1k", "2m")),
    ("rewrite-target", ("/", "/$1", "/new")),
    ("use-regex", ("true",)),
    ("ssl-redirect", ("false",)),
    ("force-ssl-redirect", ("true",)),
    ("app-root", ("/app",)),
    ("allowlist-source-range", ("10.0.0.0/8", "wrong")),
    ("backend-protocol", ("HTTPS", "HTTPS", "GRPCS", "GRPC")),
    ("proxy-ssl-verify", ("on",)),
    ("service-upstream", ("true",)),
    ("custom-headers", ("headers",)),
    ("mirror-target", ("http://copy.test$request_uri",)),
    ("affinity", ("cookie",)),
    (
        "auth-url",
        (
            "http://auth.test",
            "https://auth.test/a",
            "http://s1.a.svc/check",
            "http://$host/check",
        ),
    ),
    ("auth-proxy-set-headers", ("a/headers",)),
    ("satisfy", ("any",)),
    ("permanent-redirect", ("http://new.test",)),
    ("unknown", ("x",)),
)
#: Authorization services behind the Ingresses.
_OWN_AUTH = ("https://$host/a/x", "https://h3.test/a/x", "https://$host/b")
#: Annotations by which hosts depend on each other.
_LINKING: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("server-alias", ("alias.test", "h3.test", "*.alias.test")),
    ("from-to-www-redirect", ("true",)),
)


class Random:
    """Draws objects."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        #: In every third set, hosts depend on no others.
        self._linked = bool(seed % 3)
        #: In every fourth set, authorization services are often behind the Ingresses.
        self._asking = seed % 4 == 1

    def settings(self) -> tuple[Settings, ...]:
        """Return those of files, or those of a cluster."""
        fleet = FleetState(name="edge-ingress-d830ddbf", addresses=("192.0.2.1",))
        names: dict[str, Any] = {"classes": ("nginx",), "certificate": "a/cert0"}
        cluster = IngressSettings(
            enabled=True, publish=True, config_map="a/globals", edge_proxy="proxy", **names
        )
        chosen: tuple[Settings, ...] = (
            Settings(ingress=IngressSettings(**names)),
            Settings(standalone=False, ingress=cluster, fleets=(fleet,)),
        )
        return (self._random.choice(chosen),)

    def snapshot(self) -> Snapshot:
        """Return the first snapshot."""
        found: list[Object] = []
        for _ in range(14):
            found += self._ingress()
        for make in (
            (self._service, self._secret)
            if self._asking
            else (self._service, self._secret, self._map)
        ):
            for _ in range(16 if self._asking else 4):
                found += make()
        return Snapshot.of({str(ref_of(one)): one for one in found}.values())

    def change(self, snapshot: Snapshot) -> Snapshot:
        """Return the snapshot after a few changes."""
        makers: tuple[Callable[[], list[Object]], ...] = (
            self._ingress,
            self._ingress,
            self._ingress,
            self._service,
            self._secret,
            self._policy,
            self._map,
            self._rest,
        )
        for _ in range(self._random.choice((1, 1, 1, 2, 3))):
            made = self._random.choice(makers)()
            if self._random.random() < 0.3:
                gone: list[ObjectRef] = [ref_of(one) for one in made]
                snapshot = snapshot.replace((), gone)
            else:
                snapshot = snapshot.replace(made)
        return snapshot

    def _decode(self, text: str) -> list[Object]:
        return [one.obj for one in decode_documents(text.encode(), "a.yaml").objects]

    def _space(self) -> str:
        return self._random.choice("ab")

    def _ingress(self) -> list[Object]:
        draw = self._random
        name, space = f"i{draw.randrange(12)}", self._space()
        notes = {one: draw.choice(values) for one, values in draw.sample(_ANNOTATIONS, 2)}
        if draw.random() < 0.2:
            notes |= {"auth-type": "basic", "auth-secret": f"users{draw.randrange(2)}"}
        if self._linked and draw.random() < 0.15:
            notes |= {"canary": "true", "canary-weight": "30"}
        elif self._linked and draw.random() < 0.15:
            one, values = draw.choice(_LINKING)
            notes[one] = draw.choice(values)
        elif self._asking and draw.random() < 0.9:
            notes = draw.choice(({}, {}, {"auth-url": draw.choice(_OWN_AUTH)}))
        if draw.random() < 0.15:
            notes["backend-protocol"] = draw.choice(("HTTPS", "GRPCS"))
        if draw.random() < 0.05:
            notes["auth-type"] = "kerberos"
        lines = "".join(f"    nginx.ingress.kubernetes.io/{k}: '{v}'\n" for k, v in notes.items())
        among = _HOSTS[:4] if self._asking else _HOSTS
        hosts = [draw.choice(among) for _ in range(draw.choice((0, 1, 1, 1, 2)))]
        rules = "".join(
            f"  - {{host: '{host}', http: {{paths: [{self._path()}]}}}}\n" for host in hosts
        )
        spec = f"  rules:\n{rules}" if rules else ""
        if not rules or draw.random() < 0.2:
            spec += f"  defaultBackend: {{service: {self._backend()}}}\n"
        if draw.random() < 0.4:
            spec += f"  tls: [{{secretName: cert{draw.randrange(3)}, hosts: ['{draw.choice(hosts or ['h1.test'])}']}}]\n"
        if named := draw.choice(_CLASSES):
            spec += f"  ingressClassName: {named}\n"
        created = f"2026-01-0{draw.randrange(1, 4)}T00:00:00Z"
        return self._decode(
            f"apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata:\n  name: {name}\n  namespace: {space}\n"
            f"  creationTimestamp: '{created}'\n  annotations:\n{lines}spec:\n{spec}"
        )

    def _path(self) -> str:
        draw = self._random
        path = draw.choice(("/", "/a", "/a/", "/b"))
        kind = draw.choice(("Prefix", "Exact", "ImplementationSpecific"))
        return f"{{path: {path}, pathType: {kind}, backend: {{service: {self._backend()}}}}}"

    def _backend(self) -> str:
        draw = self._random
        port = draw.choice(("number: 80", "name: http", "number: 81"))
        return f"{{name: s{draw.randrange(4)}, port: {{{port}}}}}"

    def _service(self) -> list[Object]:
        draw = self._random
        name, space = f"s{draw.randrange(4)}", self._space()
        spec = draw.choice(
            (
                "{ports: [{port: 80, name: http}], clusterIP: 10.96.0.7}",
                "{ports: [{port: 80, name: http}, {port: 81, name: more}]}",
                "{type: ExternalName, externalName: far.test, ports: [{port: 80}]}",
            )
        )
        service = f"apiVersion: v1\nkind: Service\nmetadata: {{name: {name}, namespace: {space}}}\nspec: {spec}\n"
        ready = draw.choice(("true", "false"))
        endpoints = (
            f"apiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\nmetadata: {{name: {name}-1, namespace: {space}, "
            f"labels: {{kubernetes.io/service-name: {name}}}}}\naddressType: IPv4\nports: [{{name: http, port: 8080}}]\n"
            f"endpoints: [{{addresses: [10.0.0.1], conditions: {{ready: {ready}}}}}]\n"
        )
        return self._decode(draw.choice((service, endpoints, f"{service}---\n{endpoints}")))

    def _secret(self) -> list[Object]:
        draw = self._random
        meta = f"namespace: {self._space()}"
        if draw.random() < 0.5:
            users = draw.choice(("ann:{SHA}fEqNCco3Yq9h5ZUglD3CZJT4lBs=", "wrong"))
            return self._decode(
                f"apiVersion: v1\nkind: Secret\nmetadata: {{name: users{draw.randrange(2)}, {meta}}}\nstringData: {{auth: '{users}'}}\n"
            )
        chain, key = _certificate(draw.choice(_NAMES), draw.randrange(2))
        return self._decode(
            f"apiVersion: v1\nkind: Secret\nmetadata: {{name: cert{draw.randrange(3)}, {meta}}}\ntype: kubernetes.io/tls\n"
            f"stringData:\n  tls.crt: |\n{_indent(chain)}  tls.key: |\n{_indent(key)}"
        )

    def _map(self) -> list[Object]:
        draw = self._random
        if draw.random() < 0.3:
            data = draw.choice(
                (
                    "proxy-body-size: 3m",
                    "hsts: 'false'",
                    "global-auth-url: 'http://s0.b.svc'",
                    "block-user-agents: curl",
                )
            )
            allowed = "global-allowed-response-headers: X-One"
            return self._decode(
                f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: globals, namespace: a}}\ndata: {{{data}, {allowed}}}\n"
            )
        return self._decode(
            f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: headers, namespace: {self._space()}}}\ndata: {{X-One: '{draw.randrange(2)}'}}\n"
        )

    def _policy(self) -> list[Object]:
        draw = self._random
        name = f"s{draw.randrange(4)}"
        return self._decode(
            f"apiVersion: gateway.networking.k8s.io/v1\nkind: BackendTLSPolicy\nmetadata: {{name: {name}, namespace: {self._space()}}}\n"
            f"spec: {{targetRefs: [{{group: '', kind: Service, name: {name}}}], validation: {{hostname: x.test, wellKnownCACertificates: System}}}}\n"
        )

    def _rest(self) -> list[Object]:
        replicas = self._random.randrange(1, 3)
        return self._decode(
            "apiVersion: gateway.edge.io/v1alpha1\nkind: EdgeProxy\nmetadata: {name: proxy, namespace: edge-gateway-system}\n"
            f"spec: {{deployment: {{replicas: {replicas}}}}}\n"
        )


@cache
def _certificate(name: str, _: int) -> tuple[str, str]:
    pair = _authority().issue(name)
    return pair.certificate.decode(), pair.key.decode()


@cache
def _authority() -> Authority:
    return Authority()


def _indent(text: str) -> str:
    return "".join(f"    {line}\n" for line in text.splitlines())
