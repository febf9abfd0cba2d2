"""A Cache that follows a real API server while a test looks at it, and the objects that it begins with."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator

from cluster.world.apiserver import ApiServer
from controller.kube.cache import Cache
from controller.kube.client import Kube
from controller.kube.references import referenced
from controller.kube.scope import Scope
from controller.kube.throttle import RequestRate
from edgefast.diagnostics.problem import ObjectRef
from edgefast.translate.pipeline import translate
from edgefast.translate.settings import Settings
from tests.controller.waiting import running

QUICK = RequestRate(
    page=3,
    backoff_first=0.02,
    backoff_most=0.2,
    discover=0.2,
    discover_missing=0.1,
    absent_after=0.1,
    gone_after=0.3,
)
GROUP = "gateway.networking.k8s.io"
WORLD = """
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: NAMESPACE}
spec: {controllerName: gateway.edge.io/NAMESPACE}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: g, namespace: NAMESPACE}
spec:
  gatewayClassName: NAMESPACE
  listeners:
  - {name: a, port: 443, protocol: HTTPS, tls: {certificateRefs: [{name: used}]}}
---
apiVersion: gateway.networking.k8s.io/v1beta1
kind: HTTPRoute
metadata: {name: r, namespace: NAMESPACE}
spec:
  parentRefs: [{name: g}]
  rules: [{backendRefs: [{name: s, port: 80}]}]
---
apiVersion: v1
kind: Service
metadata: {name: s, namespace: NAMESPACE}
spec: {ports: [{port: 80}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: s-1, namespace: NAMESPACE, labels: {kubernetes.io/service-name: s}}
addressType: IPv4
ports: [{port: 80, name: ""}]
endpoints: [{addresses: [10.0.0.1]}]
---
apiVersion: v1
kind: Secret
metadata: {name: used, namespace: NAMESPACE}
stringData: {tls.crt: x, tls.key: y}
type: kubernetes.io/tls
---
apiVersion: v1
kind: Secret
metadata: {name: unused, namespace: NAMESPACE}
stringData: {password: x}
"""


class Following:
    """A running cache and what it told."""

    def __init__(self, cache: Cache, namespace: str, x_backends: bool) -> None:
        self.cache = cache
        self.changes = 0
        self.statuses: list[ObjectRef] = []
        self.settings = Settings(
            standalone=False,
            namespace=namespace,
            controller_name=f"gateway.edge.io/{namespace}",
            enable_x_backend=x_backends,
        )
        cache.on_change = self._on_change
        cache.on_status = self.statuses.append

    def _on_change(self) -> None:
        assert self.cache.synced
        self.changes += 1

    def settled(self) -> bool:
        snapshot = self.cache.snapshot()
        read = self.cache.want(referenced(snapshot, self.settings))
        return self.cache.select(translate(snapshot, self.settings).selections) and read


@contextlib.asynccontextmanager
async def following(
    server: ApiServer,
    namespace: str,
    *listed: str,
    account: str = "",
    pace: RequestRate = QUICK,
    x_backends: bool = False,
) -> AsyncIterator[Following]:
    kubeconfig = server.kubeconfig_for(account) if account else server.kubeconfig
    async with await Kube.open(kubeconfig) as kube:
        cache = Cache(kube, Scope(namespace, listed, x_backends), pace=pace)
        found = Following(cache, namespace, x_backends)
        async with running(cache.run()):
            yield found


def gateway_ref(namespace: str) -> ObjectRef:
    return ObjectRef("Gateway", namespace, "g", GROUP)
